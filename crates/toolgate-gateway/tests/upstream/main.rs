//! How the gateway proves who it is: keys that take turns, tokens that are minted in time.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod cases;
mod fake;
mod network;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};
use toolgate_gateway::config::{Config, Sources};
use toolgate_gateway::start;
use toolgate_sim::{Fault, FaultRule, Keys, Sim, SimConfig, When};

/// A key that was made for this test and opens nothing.
fn key() -> Vec<u8> {
    let text = include_str!("rsa-for-tests.base64");
    STANDARD.decode(text.split_whitespace().collect::<String>()).unwrap()
}

/// Assertions that the token service got, in order.
type Shown = Arc<Mutex<Vec<String>>>;

/// Google's token service: `token-1`, `token-2`, … each with the next lifetime; then refusals.
async fn token_service(lifetimes: Vec<u64>) -> (String, Shown) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let shown = Shown::default();
    let seen = Arc::clone(&shown);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, lifetimes) = (Arc::clone(&seen), lifetimes.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (seen, lifetimes) = (Arc::clone(&seen), lifetimes.clone());
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let mut seen = seen.lock().unwrap();
                    seen.push(String::from_utf8(body.to_vec()).unwrap());
                    let mut reply = Response::new(Full::new(Bytes::new()));
                    let body = match lifetimes.get(seen.len() - 1) {
                        Some(seconds) => {
                            json!({"access_token": format!("token-{}", seen.len()), "expires_in": seconds, "token_type": "Bearer"})
                        }
                        None => {
                            *reply.status_mut() = http::StatusCode::BAD_REQUEST;
                            json!({"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
                        }
                    };
                    *reply.body_mut() = Full::new(Bytes::from(body.to_string()));
                    Ok::<_, Infallible>(reply)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    (url, shown)
}

fn account(name: &str, token_uri: &str) -> PathBuf {
    let pem = format!(
        "-----BEGIN {0}-----\n{1}\n-----END {0}-----\n",
        "PRIVATE KEY",
        STANDARD.encode(key())
    );
    let account = json!({
        "type": "service_account", "project_id": "p1", "private_key_id": "k1", "private_key": pem,
        "client_email": "gate@p1.example", "token_uri": token_uri,
    });
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, account.to_string()).unwrap();
    path
}

/// Asks once; the status and the body.
async fn ask(url: &str) -> (u16, String) {
    asked(&format!("{url}/v1/messages"), "Hi.").await
}

/// The same at another door.
async fn asked(url: &str, words: &str) -> (u16, String) {
    let body = json!({"model": "gemini-3.6-flash", "max_tokens": 100, "messages": [{"role": "user", "content": words}]});
    let is_list = url.ends_with("/models");
    let request = if is_list { Request::get(url) } else { Request::post(url) };
    let body = if is_list { String::new() } else { body.to_string() };
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let http: Client<HttpConnector, Full<Bytes>> =
        Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let (head, body) = http.request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

/// Claims of an assertion, if it is signed with the account's key.
fn claims(form: &str) -> Value {
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let assertion = form.strip_prefix(grant).unwrap();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let pair = RsaKeyPair::from_pkcs8(&key()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref());
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let read = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(read(header), json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}));
    read(claims)
}

async fn vertex(sim: &str, account: &std::path::Path) -> toolgate_gateway::Running {
    let settings = format!(
        "kind = \"vertex\"\nproject = \"p1\"\nlocation = \"global\"\nservice_account = {account:?}"
    );
    gateway(sim, &settings).await
}

/// A gateway with these settings of its upstream.
async fn gateway(sim: &str, settings: &str) -> toolgate_gateway::Running {
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"memory\"\n[upstream]\nurl = {sim:?}\n{settings}\n"
    );
    let file = Some(("test.toml", settings.as_str()));
    start(Config::resolve(&Sources { file, env: &|_| None, flags: &[] }).unwrap()).await.unwrap()
}

#[tokio::test]
async fn vertex_tokens_are_minted_kept_and_renewed() {
    // The first is as good as over when it comes, the second lasts, the third is never asked for.
    let (token_uri, shown) = token_service(vec![60, 3600]).await;
    let keys = Keys::These(vec!["token-1".to_owned(), "token-2".to_owned()]);
    let sim = Sim::start(SimConfig { keys, ..SimConfig::default() }).await.unwrap();
    let account = account("account.json", &token_uri);
    let gateway = vertex(&sim.url(), &account).await;
    let url = format!("http://{}", gateway.addr);
    for (number, minted) in [1, 2, 2, 2].into_iter().enumerate() {
        let (status, body) = ask(&url).await;
        assert_eq!(status, 200, "{number}: {body}");
        assert_eq!(shown.lock().unwrap().len(), minted, "{number}");
    }
    for form in shown.lock().unwrap().iter() {
        let claims = claims(form);
        assert_eq!(claims["iss"], "gate@p1.example");
        assert_eq!(claims["aud"], token_uri.as_str());
        assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
        let lasts = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
        assert_eq!(lasts, 3600);
    }
    let seen = sim.requests();
    let path = "/v1beta1/projects/p1/locations/global/publishers/google/models/gemini-3.6-flash:generateContent";
    assert!(seen.iter().all(|seen| seen.path == path), "{:?}", seen[0].path);
}

#[tokio::test]
async fn a_service_account_that_is_refused_is_named() {
    let (token_uri, _) = token_service(Vec::new()).await;
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let account = account("refused.json", &token_uri);
    let gateway = vertex(&sim.url(), &account).await;
    let (status, body) = ask(&format!("http://{}", gateway.addr)).await;
    assert_eq!(status, 401, "{body}");
    assert!(body.contains("service account") && body.contains("400"), "{body}");
    assert!(!body.contains("assertion"), "{body}");
}

/// A key that is refused, or whose quota is used up, rests; the next one answers, unseen.
#[tokio::test]
async fn keys_of_the_pool_stand_in_for_each_other() {
    let keys = Keys::These(vec!["good".to_owned()]);
    let sim = Sim::start(SimConfig { keys, ..SimConfig::default() }).await.unwrap();
    let bad_and_good = "kind = \"developer\"\napi_keys = [\"bad\", \"good\"]";
    let running = gateway(&sim.url(), bad_and_good).await;
    // Conversations have their own keys; of so many, some have this one.
    for number in 0..16 {
        let url = format!("http://{}/v1/messages", running.addr);
        let (status, body) = asked(&url, &format!("Hi, {number}.")).await;
        assert_eq!(status, 200, "{number}: {body}");
    }
    assert_eq!(sim.counters().refusals, 1, "the bad one was tried once");
    // Counts and lists too.
    for path in ["/v1/messages/count_tokens", "/v1/models"] {
        let running = gateway(&sim.url(), bad_and_good).await;
        for _ in 0..3 {
            let (status, body) = asked(&format!("http://{}{path}", running.addr), "Hi.").await;
            assert_eq!(status, 200, "{path}: {body}");
        }
    }

    for quota in ["Minute", "Day"] {
        let fault = Fault::Status {
            code: 429,
            message: String::new(),
            retry_after: Some("3000s".to_owned()),
            quota: Some(quota.to_owned()),
            html: false,
        };
        let faults = vec![FaultRule { fault, when: When::Requests(vec![1, 3, 4]) }];
        let sim = Sim::start(SimConfig { faults, ..SimConfig::default() }).await.unwrap();
        let two = "kind = \"developer\"\napi_keys = [\"one\", \"two\"]";
        let running = gateway(&sim.url(), two).await;
        let url = format!("http://{}", running.addr);
        assert_eq!(ask(&url).await.0, 200, "{quota}: the second key answers");
        let (status, body) = ask(&url).await;
        assert_eq!(status, 429, "{quota}: both have to rest: {body}");
        assert_eq!(sim.counters().requests, 3, "{quota}: nobody is asked in vain");
    }
}
