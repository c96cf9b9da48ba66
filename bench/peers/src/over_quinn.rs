//! Ends over QUIC: one stream of a connection whose TLS is as usual, but that any certificate is taken.

use crate::end::{CHUNK, Fault, QUESTION, ask_by, say_ready, tell_octets, within};
use crate::{End, Role};
use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// A circuit of the benchmark may have as much on its way; quinn's own 1.25 MB end at 500 Mbit/s over 20 ms.
const WINDOW: u32 = 6 << 20;

pub async fn run(end: End) -> Result<(), Fault> {
    match end.role {
        Role::Sink => {
            let (_endpoint, connection) = accept(end.at).await?;
            sink(end, connection).await
        }
        Role::Source => {
            let (_endpoint, connection) = connect(end.at).await?;
            source(end, connection).await
        }
        Role::Echo => {
            let (_endpoint, connection) = accept(end.at).await?;
            echo(connection).await
        }
        Role::Ask => {
            let (_endpoint, connection) = connect(end.at).await?;
            ask(end, connection).await
        }
    }
}

async fn sink(end: End, connection: Connection) -> Result<(), Fault> {
    let mut octets = 0;
    let taking = async {
        let mut stream = connection.accept_uni().await?;
        // The other end may leave a moment before this window is over: that is no error.
        while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await {
            if end.window.is_open() {
                octets += chunk.bytes.len() as u64;
            }
        }
        Ok(())
    };
    within(end.window, taking).await?;
    tell_octets(octets);
    Ok(())
}

async fn source(end: End, connection: Connection) -> Result<(), Fault> {
    let mut stream = connection.open_uni().await?;
    let chunk = Bytes::from(vec![0x5a; CHUNK]);
    let giving = async {
        loop {
            stream.write_chunk(chunk.clone()).await?;
        }
    };
    within(end.window, giving).await.map(drop)
}

async fn echo(connection: Connection) -> Result<(), Fault> {
    let (mut there, mut back) = connection.accept_bi().await?;
    let mut room = [0; QUESTION];
    loop {
        back.read_exact(&mut room).await?;
        there.write_all(&room).await?;
    }
}

async fn ask(end: End, connection: Connection) -> Result<(), Fault> {
    let (mut there, mut back) = connection.open_bi().await?;
    let mut room = [0x5a; QUESTION];
    ask_by(end.window, async || {
        there.write_all(&room).await?;
        back.read_exact(&mut room).await?;
        Ok(())
    })
    .await
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW)).send_window(u64::from(WINDOW));
    Arc::new(transport)
}

async fn accept(at: SocketAddrV4) -> Result<(Endpoint, Connection), Fault> {
    let own = rcgen::generate_simple_self_signed(["peer".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into())?;
    config.transport_config(transport());
    let endpoint = Endpoint::server(config, at.into())?;
    say_ready();
    let incoming = endpoint.accept().await.ok_or("the endpoint has ended")?;
    let connection = incoming.await?;
    Ok((endpoint, connection))
}

async fn connect(to: SocketAddrV4) -> Result<(Endpoint, Connection), Fault> {
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    let connection = endpoint.connect_with(config, to.into(), "peer")?.await?;
    Ok((endpoint, connection))
}

/// Takes the certificate of any server that holds its key: both ends are in one lab, and the octets of
/// a stream cost the same.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
