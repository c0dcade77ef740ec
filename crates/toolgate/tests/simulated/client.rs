//! URLs, keys, token counts, model lists, and a real socket.

use serde_json::json;
use toolgate::{Client, FailureKind, Request, Retries, Toolset};
use toolgate_sim::{Fault, FaultRule, Keys, Script, Sim, SimConfig, When};

use crate::support::{builder, clean, client};
use crate::tools::weather;

#[tokio::test]
async fn r65_over_a_real_socket() {
    let script = Script::new().call("weather", json!({"city": "Oslo"})).finish().text("22 °C.");
    for streamed in [false, true] {
        let sim = Sim::start(SimConfig::scripted(script.clone())).await.unwrap();
        let client = Client::builder().api_key("a key").base_url(sim.url()).build().unwrap();
        let request = Request::new("Weather?").tools(Toolset::new().with::<weather>());
        let response = match streamed {
            true => client.stream(request).finish().await.unwrap(),
            false => client.generate(request).await.unwrap(),
        };
        assert_eq!(response.text(), "22 °C.");
        clean(&sim, 2);
        sim.shutdown().await;
    }
}

#[tokio::test]
async fn r64_an_unreachable_server_is_an_error() {
    let sim = Sim::start(SimConfig::default()).await.unwrap();
    let url = sim.url();
    sim.shutdown().await;
    let client =
        Client::builder().api_key("a key").base_url(url).retries(Retries::NONE).build().unwrap();
    let error = client.generate("Hi?").await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Unreachable));
    assert!(error.to_string().starts_with("cannot connect to 127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn vertex_has_other_urls_and_tokens() {
    let sim = Sim::new(SimConfig::scripted(Script::new().text("Hi.").times(0)));
    let client = Client::builder()
        .vertex("p", "eu")
        .base_url("http://simulator")
        .token(|| async { Ok("a token".to_owned()) })
        .transport(sim.clone())
        .header("X-Extra", "1")
        .build()
        .unwrap();
    assert_eq!(client.generate("Hi?").await.unwrap().text(), "Hi.");
    client.stream("Hi?").finish().await.unwrap();
    clean(&sim, 2);
    let seen = &sim.requests()[0];
    let path = "/v1beta1/projects/p/locations/eu/publishers/google/models/gemini-3.6-flash";
    assert_eq!(seen.path, format!("{path}:generateContent"));
    assert_eq!(seen.header("x-extra"), Some("1"));
    assert!(seen.header("x-goog-api-client").is_some_and(|it| it.starts_with("toolgate/")));
    assert_eq!(sim.requests()[1].query, "alt=sse");
}

#[tokio::test]
async fn missing_and_invalid_keys_are_distinguished() {
    let config = SimConfig { keys: Keys::These(vec!["right".into()]), ..SimConfig::default() };
    let sim = Sim::new(config);
    let ask = async |key: &str| {
        let client =
            Client::builder().api_key(key).base_url("http://simulator").transport(sim.clone());
        client.build().unwrap().generate("Hi?").await
    };
    assert!(ask("right").await.is_ok());
    let error = ask("wrong").await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Authentication));
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn tokens_are_counted_with_tools() {
    let (client, sim) = client(Script::new());
    let plain = client.count_tokens("Hello there.").await.unwrap();
    let tools = Toolset::new().with::<weather>();
    let with = client.count_tokens(Request::new("Hello there.").tools(tools)).await.unwrap();
    assert!(plain.total > 0 && with.total > plain.total, "{plain:?} {with:?}");
    clean(&sim, 2);
}

#[tokio::test]
async fn models_are_listed() {
    let (client, _sim) = client(Script::new());
    let models = client.models().await.unwrap();
    let model = models.iter().find(|it| it.name == "gemini-3.6-flash").unwrap();
    assert!(model.methods.iter().any(|it| it == "generateContent"));
    assert!(model.input_token_limit.is_some_and(|limit| limit > 100_000));
    assert_eq!(client.model_info("gemini-3.6-flash").await.unwrap().name, model.name);
    let error = client.model_info("gemini-nonexistent").await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::NotFound));
}

#[tokio::test(start_paused = true)]
async fn retry_delays_of_the_server_are_respected() {
    let limited = |retry_after: &str, quota: &str| Fault::Status {
        code: 429,
        message: String::new(),
        retry_after: Some(retry_after.to_owned()),
        quota: Some(quota.to_owned()),
        html: false,
    };
    for (fault, attempts, waited) in [
        (limited("7s", "Minute"), 2, 7),
        // Longer than the maximum delay, and a daily quota.
        (limited("3600s", "Minute"), 1, 0),
        (limited("7s", "Day"), 1, 0),
    ] {
        let (builder, sim) = builder(Script::new().text("Hi.").times(0));
        let when = When::Requests(vec![1]);
        sim.set_faults(vec![FaultRule { fault, when }]);
        let client = builder.build().unwrap();
        let start = tokio::time::Instant::now();
        let answered = client.generate("Hi?").await;
        assert_eq!(answered.is_ok(), attempts == 2);
        assert_eq!(sim.counters().requests, attempts);
        assert_eq!(start.elapsed().as_secs(), waited);
    }
}

#[tokio::test]
async fn ids_are_unique_across_turns_and_clients() {
    let ids = async || {
        let sim = Sim::new(SimConfig::scripted(Script::new().call("ask", json!({})).times(0)));
        let client = Client::builder().api_key("k").base_url("http://s").transport(sim).build();
        let ask = toolgate::Tool::declared_json(&json!({"name": "ask", "description": "Asks."}));
        let request = Request::new("Go.").tools(Toolset::new().tool(ask.unwrap()));
        client.unwrap().generate(request).await.unwrap().calls()[0].id().to_owned()
    };
    assert_ne!(ids().await, ids().await);
}

/// A CONNECT proxy for one connection to a port on loopback; returns its first request line.
async fn proxy_once(listener: tokio::net::TcpListener, target: u16) -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).await.unwrap(), 0);
    }
    let mut upstream = tokio::net::TcpStream::connect(("127.0.0.1", target)).await.unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    tokio::spawn(async move {
        // It ends when either side closes its connection.
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut upstream).await;
    });
    head.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_proxy_can_be_set() {
    let sim = Sim::start(SimConfig::scripted(Script::new().text("Hi."))).await.unwrap();
    let port = sim.address().port();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let builder = Client::builder().api_key("k").base_url("http://localhost:8080");
    let client = builder.clone().proxy(&url).unwrap().build().unwrap();
    let (answer, line) = tokio::join!(client.generate("Hi!"), proxy_once(listener, port));
    assert_eq!(answer.unwrap().text(), "Hi.");
    assert_eq!(line, "CONNECT localhost:8080 HTTP/1.1");
    let error = builder.clone().proxy("socks5://p").unwrap_err().to_string();
    assert!(error.contains("not the URL of an HTTP proxy"), "{error}");
    let error = builder.ca_file("absent.pem").build().unwrap_err().to_string();
    assert!(error.contains("absent.pem"), "{error}");
}
