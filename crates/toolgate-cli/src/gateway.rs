//! Gateways: starting one, and finding one that runs.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use toolgate_gateway::config::Config;
use toolgate_gateway::identity::{IDENTITY_PATH, Identity, IdentitySecret, NONCE_HEADER, verify};
use toolgate_gateway::{Embedded, Options, Running, start_with};
use toolgate_sim::{Sim, SimConfig};

use crate::memory::give_back;
use crate::state::{Private, random_hex};

/// Maximum time to open a connection to a gateway.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time to wait for a gateway's proof.
const PROOF_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size of a gateway's proof, with its head.
const MAX_PROOF_BYTES: u64 = 16 << 10;

/// Starts a gateway. The simulator is in this process and opens no port.
pub(crate) async fn start(config: Config, identity: Option<IdentitySecret>) -> Result<Running> {
    // No endpoint shows the requests of this simulator, so it stores none.
    let sim = Sim::new(SimConfig { keep_requests: 0, ..SimConfig::default() });
    let simulator = Some(Embedded::new(move || sim.connect()));
    Ok(start_with(config, Options { simulator, identity, calm: give_back }).await?)
}

/// Listener on an address.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Nothing.
    None,
    /// A gateway of this user.
    Proven {
        /// Address of the connection.
        addr: SocketAddr,
        /// Verified description of the gateway.
        identity: Identity,
    },
    /// A program that has not proved to be a gateway of this user.
    Unproven,
}

/// Identifies the listener on `addr`. Only a random nonce is sent.
pub(crate) async fn look(addr: SocketAddr, folder: Option<&Private>) -> Listener {
    let Ok(Ok(stream)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(addr)).await else {
        return Listener::None;
    };
    let Some(secret) = folder.and_then(|folder| folder.secret(addr)) else {
        return Listener::Unproven;
    };
    match timeout(PROOF_TIMEOUT, prove(stream, &secret)).await {
        Ok(Some((addr, identity))) => Listener::Proven { addr, identity },
        Ok(None) | Err(_) => Listener::Unproven,
    }
}

async fn prove(mut stream: TcpStream, secret: &IdentitySecret) -> Option<(SocketAddr, Identity)> {
    let addr = stream.peer_addr().ok()?;
    let nonce = random_hex().ok()?;
    let request = format!(
        "GET {IDENTITY_PATH} HTTP/1.1\r\nhost: {addr}\r\n{NONCE_HEADER}: {nonce}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.take(MAX_PROOF_BYTES).read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then_some(())?;
    Some((addr, verify(secret, &nonce, addr, body.as_bytes())?))
}
