//! Proof that a gateway belongs to the user who asks.
//!
//! A program that wants to use a gateway on a local port sends a random nonce. The gateway answers with
//! a description of itself and a MAC over nonce, address and description, under a secret that only
//! the user can read. The address is that of the connection as each side sees it, so that another
//! listener cannot pass the nonce on to the real gateway and its answer back.

use std::fmt;
use std::net::SocketAddr;

use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::config::{Access, Config};

/// Path of the endpoint.
pub const IDENTITY_PATH: &str = "/toolgate/identity";
/// Request header with the nonce: 64 hexadecimal digits.
pub const NONCE_HEADER: &str = "x-toolgate-nonce";

const NONCE_DIGITS: usize = 64;
/// Separates these MACs from any other use of the secret.
const LABEL: &str = "toolgate identity 1";

/// Secret shared by a gateway and programs of the same user.
#[derive(Clone)]
pub struct IdentitySecret([u8; 32]);

impl IdentitySecret {
    /// Wraps random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl fmt::Debug for IdentitySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdentitySecret(…)")
    }
}

/// Description of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// [`Upstream::target`](crate::config::Upstream::target)
    pub upstream: String,
    /// [`Upstream::host`](crate::config::Upstream::host)
    pub host: String,
    /// Key that clients must present.
    pub access: Access,
}

impl Identity {
    /// Describes a gateway with this configuration.
    pub fn of(config: &Config) -> Self {
        let upstream = &config.upstream;
        Self { upstream: upstream.target(), host: upstream.host(), access: config.access() }
    }
}

#[derive(Serialize, Deserialize)]
struct Answer {
    identity: Identity,
    proof: String,
}

/// Text under the MAC. JSON keeps the fields apart.
fn statement(nonce: &str, address: SocketAddr, identity: &Identity) -> String {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port()).to_string();
    serde_json::to_string(&(LABEL, nonce, address, identity)).unwrap_or_default()
}

/// Verifies an answer from `address` to `nonce`; returns the description of the gateway.
pub fn verify(
    secret: &IdentitySecret,
    nonce: &str,
    address: SocketAddr,
    answer: &[u8],
) -> Option<Identity> {
    let Answer { identity, proof } = serde_json::from_slice(answer).ok()?;
    let proof = from_hex(&proof)?;
    let statement = statement(nonce, address, &identity);
    // Constant-time comparison.
    hmac::verify(&secret.key(), statement.as_bytes(), &proof).ok()?;
    Some(identity)
}

/// Proves the gateway's identity: the answer to `nonce` on a connection to `address`.
pub(crate) fn prove(
    secret: &IdentitySecret,
    config: &Config,
    address: SocketAddr,
    nonce: &str,
) -> String {
    let identity = Identity::of(config);
    let proof = hmac::sign(&secret.key(), statement(nonce, address, &identity).as_bytes());
    let proof = proof.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    serde_json::to_string(&Answer { identity, proof }).unwrap_or_default()
}

/// Whether a text can be a nonce.
pub(crate) fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    const HERE: &str = "127.0.0.1:8741";

    fn config() -> Config {
        Config::resolve(&Sources { file: None, env: &|_| None, flags: &[] }).unwrap()
    }

    #[test]
    fn a_proof_holds_for_its_nonce_address_secret_and_words_only() {
        let secret = IdentitySecret::new([7; 32]);
        let (nonce, here) = ("ab".repeat(32), HERE.parse().unwrap());
        let answer = prove(&secret, &config(), here, &nonce).into_bytes();
        let identity = verify(&secret, &nonce, here, &answer).unwrap();
        assert_eq!(identity, Identity::of(&config()));
        let mapped = "[::ffff:127.0.0.1]:8741".parse().unwrap();
        assert!(verify(&secret, &nonce, mapped, &answer).is_some(), "the same address");

        let other = IdentitySecret::new([8; 32]);
        assert_eq!(verify(&other, &nonce, here, &answer), None, "another secret");
        assert_eq!(verify(&secret, &"cd".repeat(32), here, &answer), None, "another nonce");
        let relay = "127.0.0.1:8742".parse().unwrap();
        assert_eq!(verify(&secret, &nonce, relay, &answer), None, "another address");
        let text = String::from_utf8(answer).unwrap();
        let altered = text.replace("simulator", "gemini");
        assert_ne!(altered, text);
        assert_eq!(verify(&secret, &nonce, here, altered.as_bytes()), None, "other words");
        for broken in ["", "{}", "[]", &text.replace("\"proof\":\"", "\"proof\":\"é")] {
            assert_eq!(verify(&secret, &nonce, here, broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn nonces_are_whole_and_secrets_are_not_shown() {
        assert!(!is_nonce("ab"));
        assert!(is_nonce(&"ab".repeat(32)));
        assert!(!is_nonce(&"xy".repeat(32)));
        assert_eq!(format!("{:?}", IdentitySecret::new([7; 32])), "IdentitySecret(…)");
    }
}
