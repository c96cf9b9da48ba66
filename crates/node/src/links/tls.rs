//! TLS 1.3 between nodes: raw public keys of both sides (RFC 7250), pinned; no resumption, no early data.

use super::identity::{NodeKey, PublicKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, DigitallySignedStruct, DistinguishedName,
    Error, PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme, version,
};
use std::net::IpAddr;
use std::sync::Arc;

/// The protocol inside TLS.
pub(super) const ALPN: &[u8] = b"rota-rcap/1";
/// Octets that TLS may hold for the socket: a link's queue is its own.
const BUFFERED_MAX: usize = 32 * 1024;

/// Makes the TLS side of connections.
pub(super) struct Tls {
    own: Arc<CertifiedKey>,
    provider: Arc<CryptoProvider>,
    server: Arc<ServerConfig>,
}

impl Tls {
    /// For a node with this key, whose neighbours have those.
    pub(super) fn new(own: &NodeKey, pinned: impl Iterator<Item = PublicKey>) -> Result<Self, Error> {
        let mut provider = ring::default_provider();
        // One group, so that no hello has to be asked for again.
        provider.kx_groups = vec![ring::kx_group::X25519];
        let provider = Arc::new(provider);
        let chain = vec![CertificateDer::from(own.public().info())];
        let own = Arc::new(CertifiedKey::new(chain, own.secret()));
        let pins = Arc::new(Pins::new(pinned, &provider));
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let mut server = server
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(pins)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&own))));
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.max_early_data_size = 0;
        Ok(Self { own, provider, server: Arc::new(server) })
    }

    /// The side of a connection that was accepted.
    pub(super) fn accepted(&self) -> Result<Connection, Error> {
        let mut connection = ServerConnection::new(Arc::clone(&self.server))?;
        connection.set_buffer_limit(Some(BUFFERED_MAX));
        Ok(connection.into())
    }

    /// The side of a connection to a neighbour that must have this key.
    pub(super) fn dialled(&self, to: IpAddr, key: PublicKey) -> Result<Connection, Error> {
        let client = Arc::new(self.client(key)?);
        let mut connection = ClientConnection::new(client, ServerName::IpAddress(to.into()))?;
        connection.set_buffer_limit(Some(BUFFERED_MAX));
        Ok(connection.into())
    }

    /// The key that this node shows and the one that it wants where it dials.
    pub(super) fn client(&self, key: PublicKey) -> Result<ClientConfig, Error> {
        let pins = Arc::new(Pins::new(std::iter::once(key), &self.provider));
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(pins)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(
                &self.own,
            ))));
        client.alpn_protocols = vec![ALPN.to_vec()];
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.enable_early_data = false;
        Ok(client)
    }
}

/// The key that the far end has proved to have.
pub(super) fn key_of(connection: &Connection) -> Option<PublicKey> {
    PublicKey::of_info(connection.peer_certificates()?.first()?)
}

/// Tests if a far end has a key that is pinned.
#[derive(Debug)]
struct Pins {
    keys: Vec<PublicKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pins {
    fn new(keys: impl Iterator<Item = PublicKey>, provider: &CryptoProvider) -> Self {
        Self { keys: keys.collect(), algorithms: provider.signature_verification_algorithms }
    }

    fn look(&self, info: &CertificateDer<'_>) -> Result<(), Error> {
        let key = PublicKey::of_info(info);
        let is_pinned = key.is_some_and(|key| self.keys.contains(&key));
        let denied = CertificateError::ApplicationVerificationFailure;
        if is_pinned { Ok(()) } else { Err(Error::InvalidCertificate(denied)) }
    }

    fn proven(
        &self,
        message: &[u8],
        info: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let info = SubjectPublicKeyInfoDer::from(info.as_ref());
        verify_tls13_signature_with_raw_key(message, &info, signed, &self.algorithms)
    }
}

const NO_TLS12: Error = Error::PeerIncompatible(PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig);

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.look(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(NO_TLS12)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        info: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.proven(message, info, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pins {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.look(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(NO_TLS12)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        info: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.proven(message, info, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
