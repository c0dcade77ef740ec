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
use toolgate_transport::{CLOUD_PLATFORM_SCOPE, OAUTH_TOKEN_URL};

use crate::clock;
use crate::config::Secret;

/// Source of OAuth tokens of a service account: requests them and caches the current one.
pub(super) struct TokenSource {
    account: Account,
    key: RsaKeyPair,
    current: Mutex<Option<(Secret, Instant)>>,
}

/// A service-account file; other members are ignored.
#[derive(Deserialize)]
struct Account {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    #[serde(default = "default_token_uri")]
    token_uri: String,
}

fn default_token_uri() -> String {
    OAUTH_TOKEN_URL.to_owned()
}

/// Lifetime that is requested for a token.
const LIFETIME_SECONDS: u64 = 3600;
/// A token is replaced this long before it expires.
const EXPIRY_MARGIN: Duration = Duration::from_secs(300);

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

    /// Returns a token that is valid for some minutes. Concurrent callers share one token request.
    pub(super) async fn token(&self, client: &super::UpstreamClient) -> Result<Secret, Failure> {
        let mut current = self.current.lock().await;
        if let Some((token, until)) = &*current
            && Instant::now() + EXPIRY_MARGIN < *until
        {
            return Ok(token.clone());
        }
        let (token, lifetime) = self.mint(client).await?;
        *current = Some((token.clone(), Instant::now() + lifetime));
        Ok(token)
    }

    async fn mint(&self, client: &super::UpstreamClient) -> Result<(Secret, Duration), Failure> {
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
        let (status, body) = client.post_form(&self.account.token_uri, form).await?;
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
            "iss": self.account.client_email, "scope": CLOUD_PLATFORM_SCOPE, "aud": self.account.token_uri,
            "iat": now, "exp": now + LIFETIME_SECONDS,
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

/// Lifetime of a token; at most the requested one.
fn lifetime(expires_in: Option<u64>) -> Duration {
    Duration::from_secs(expires_in.unwrap_or(LIFETIME_SECONDS).min(LIFETIME_SECONDS))
}

/// Bytes of the first private key of a PEM text.
fn pem(text: &str) -> Option<Vec<u8>> {
    let body = text.split_once("-----BEGIN PRIVATE KEY-----")?.1;
    let body = body.split_once("-----END PRIVATE KEY-----")?.0;
    let digits: String = body.chars().filter(|character| !character.is_whitespace()).collect();
    STANDARD.decode(digits).ok()
}

/// Token source shared by all requests.
pub(super) type Tokens = Arc<TokenSource>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_expires_in_an_hour_at_most() {
        for (expires_in, want) in [(None, 3600), (Some(60), 60), (Some(u64::MAX), 3600)] {
            assert_eq!(lifetime(expires_in).as_secs(), want);
        }
    }
}
