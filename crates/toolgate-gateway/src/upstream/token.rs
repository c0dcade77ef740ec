//! OAuth tokens from a service-account file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use tokio::sync::Mutex;
use toolgate_core::canon::{Failure, FailureKind};

use crate::clock;
use crate::config::Secret;

/// Mints tokens and keeps the current one.
pub(super) struct TokenSource {
    account: Account,
    key: RsaKeyPair,
    current: Mutex<Option<(Secret, Instant)>>,
}

/// The members of the file that matter.
#[derive(Deserialize)]
struct Account {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    #[serde(default = "google_token_uri")]
    token_uri: String,
}

fn google_token_uri() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const LIFETIME: u64 = 3600;
/// A token is not used in its last minutes.
const MARGIN: Duration = Duration::from_secs(300);

impl TokenSource {
    /// Reads a service-account file.
    pub(super) fn read(path: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        let account: Account =
            serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
        let der = pem(&account.private_key)
            .ok_or_else(|| format!("{path}: private_key is not a PEM of a PKCS#8 key"))?;
        let key = RsaKeyPair::from_pkcs8(&der)
            .map_err(|error| format!("{path}: private_key is refused: {error}"))?;
        Ok(Self { account, key, current: Mutex::new(None) })
    }

    /// A token that is good for some minutes yet. One request at a time mints.
    pub(super) async fn token(&self, link: &super::Link) -> Result<Secret, Failure> {
        let mut current = self.current.lock().await;
        if let Some((token, until)) = &*current
            && Instant::now() + MARGIN < *until
        {
            return Ok(token.clone());
        }
        let (token, lifetime) = self.mint(link).await?;
        *current = Some((token.clone(), Instant::now() + lifetime));
        Ok(token)
    }

    async fn mint(&self, link: &super::Link) -> Result<(Secret, Duration), Failure> {
        #[derive(Deserialize)]
        struct Granted {
            access_token: String,
            expires_in: Option<u64>,
        }
        let refused = |why: String| {
            Failure::new(
                FailureKind::Authentication,
                format!("no token for the service account: {why}"),
            )
        };
        let assertion =
            self.assertion().ok_or_else(|| refused("it cannot be signed".to_owned()))?;
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}"
        );
        let (status, body) = link.post_form(&self.account.token_uri, form).await?;
        let granted: Granted = serde_json::from_slice(&body)
            .map_err(|_| refused(format!("the token service answered {status}")))?;
        Ok((Secret::new(granted.access_token), lifetime(granted.expires_in)))
    }

    fn assertion(&self) -> Option<String> {
        let now = clock::now().as_secs();
        let mut header = serde_json::json!({"alg": "RS256", "typ": "JWT"});
        if let Some(id) = &self.account.private_key_id {
            header["kid"] = id.as_str().into();
        }
        let claims = serde_json::json!({
            "iss": self.account.client_email, "scope": SCOPE, "aud": self.account.token_uri,
            "iat": now, "exp": now + LIFETIME,
        });
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenSource")
            .field("account", &self.account.client_email)
            .finish_non_exhaustive()
    }
}

/// How long a token is used; no longer than it was requested for.
fn lifetime(expires_in: Option<u64>) -> Duration {
    Duration::from_secs(expires_in.unwrap_or(LIFETIME).min(LIFETIME))
}

/// The bytes between a PEM's first pair of lines.
fn pem(text: &str) -> Option<Vec<u8>> {
    let body = text.split_once("-----BEGIN PRIVATE KEY-----")?.1;
    let body = body.split_once("-----END PRIVATE KEY-----")?.0;
    let digits: String = body.chars().filter(|character| !character.is_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

/// Shared by all requests.
pub(super) type Tokens = Arc<TokenSource>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_lifetime_is_bounded() {
        for (expires_in, want) in [(None, 3600), (Some(60), 60), (Some(u64::MAX), 3600)] {
            assert_eq!(lifetime(expires_in).as_secs(), want);
        }
    }
}
