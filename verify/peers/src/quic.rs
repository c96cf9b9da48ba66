//! quinn: one connection, one stream.

use crate::{CHUNK, Failure, Order, QUESTION, Window, ask, now, say_count, say_ready};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::net::SocketAddr;
use std::sync::Arc;

const NAME: &str = "peer";

pub async fn run(role: &str, order: &Order) -> Result<(), Failure> {
    match role {
        "sink" => sink(order).await,
        "source" => source(order).await,
        "echo" => echo(order).await,
        "ask" => {
            let (_endpoint, connection) = connect(order).await?;
            let (mut send, mut receive) = connection.open_bi().await?;
            // A question at a time: the lock is free each time.
            let stream = tokio::sync::Mutex::new((&mut send, &mut receive));
            let once = || async {
                let mut stream = stream.lock().await;
                stream.0.write_all(&[0x5a; QUESTION]).await?;
                stream.1.read_exact(&mut [0; QUESTION]).await?;
                Ok(())
            };
            ask(order.window, once).await
        }
        _ => Err(format!("'{role}' is no role").into()),
    }
}

/// A window of the stream that holds what 1 Gbit/s carries in 46 ms, as the circuits have.
fn transport() -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    let window = quinn::VarInt::from_u32(5_832_704);
    config.stream_receive_window(window).receive_window(window).send_window(5_832_704);
    Arc::new(config)
}

async fn accept(order: &Order) -> Result<(quinn::Endpoint, quinn::Connection), Failure> {
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = quinn::ServerConfig::with_single_cert(vec![cert.der().clone()], key)?;
    config.transport_config(transport());
    let endpoint = quinn::Endpoint::server(config, SocketAddr::V4(order.at))?;
    say_ready();
    let coming = endpoint.accept().await.ok_or("the endpoint is closed")?;
    Ok((endpoint, coming.await?))
}

async fn connect(order: &Order) -> Result<(quinn::Endpoint, quinn::Connection), Failure> {
    let schemes = ring::default_provider().signature_verification_algorithms;
    let tls = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(schemes)))
        .with_no_client_auth();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let mut endpoint = quinn::Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(SocketAddr::V4(order.at), NAME)?.await?;
    Ok((endpoint, connection))
}

async fn sink(order: &Order) -> Result<(), Failure> {
    let (_endpoint, connection) = accept(order).await?;
    let mut octets = 0;
    let counting = async {
        let mut stream = connection.accept_uni().await?;
        let mut room = vec![0; CHUNK];
        while let Some(taken) = stream.read(&mut room).await? {
            octets += if order.window.holds(now()) { taken as u64 } else { 0 };
        }
        Ok::<_, Failure>(())
    };
    let _ = tokio::time::timeout(order.window.left(), counting).await;
    say_count(octets);
    Ok(())
}

async fn source(order: &Order) -> Result<(), Failure> {
    let (_endpoint, connection) = connect(order).await?;
    let mut stream = connection.open_uni().await?;
    let chunk = vec![0x5a; CHUNK];
    let window: Window = order.window;
    let sending = async {
        while !window.is_over() {
            stream.write_all(&chunk).await?;
        }
        Ok::<_, Failure>(())
    };
    let _ = tokio::time::timeout(window.left(), sending).await;
    Ok(())
}

async fn echo(order: &Order) -> Result<(), Failure> {
    let (_endpoint, connection) = accept(order).await?;
    let (mut send, mut receive) = connection.accept_bi().await?;
    let mut room = [0; QUESTION];
    while receive.read_exact(&mut room).await.is_ok() {
        send.write_all(&room).await?;
    }
    Ok(())
}

/// Both ends are of one measurement: nobody else's certificate can come.
#[derive(Debug)]
struct Anybody(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
