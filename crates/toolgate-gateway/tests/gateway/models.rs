//! `/v1/models`, as OpenAI's and Anthropic's clients read it.
#![cfg(test)]

use crate::harness::{Lab, Reply};
use http::Method;
use serde_json::Value;
use toolgate_sim::SimConfig;

const VERSION: [(&str, &str); 1] = [("anthropic-version", "2023-06-01")];

async fn anthropic(lab: &Lab, query: &str) -> Reply {
    lab.send(Method::GET, &format!("/v1/models{query}"), &VERSION, "").await
}

fn ids(list: &Value) -> Vec<String> {
    let data = list["data"].as_array().unwrap();
    data.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

/// The upstream's list is read to its end, however short its pages are.
#[tokio::test]
async fn every_page_of_the_upstream_is_listed() {
    let whole = Lab::new().await;
    let all = ids(&whole.get("/v1/models").await.json());
    let short = Lab::with(SimConfig { page: 4, ..SimConfig::default() }, "").await;
    assert_eq!(ids(&short.get("/v1/models").await.json()), all);
    let last = short.get("/v1/models/gemini-3-pro").await;
    assert!(last.status.is_success(), "on the last page: {}", last.text());
}

/// Claude Code's picker takes ids of the form `claude-{family}-{major}-{minor}`.
#[tokio::test]
async fn names_of_other_vendors_are_listed_with_their_model() {
    let lab = Lab::new().await;
    let list = anthropic(&lab, "?limit=1000").await.json();
    let named = |id: &str| list["data"].as_array().unwrap().iter().find(|it| it["id"] == id);
    for (id, model) in [
        ("claude-opus-4-5", "Gemini 3.1 Pro Preview"),
        ("claude-sonnet-4-5", "Gemini 3.6 Flash"),
        ("claude-haiku-4-5", "Gemini 3.5 Flash-Lite"),
    ] {
        let shown = named(id).unwrap_or_else(|| panic!("no {id} in {list}"));
        assert_eq!(shown["display_name"], format!("{id} ({model})"));
        assert_eq!(shown["max_input_tokens"], 1_048_576);
        let one = anthropic(&lab, &format!("/{id}")).await.json();
        assert_eq!(&one, shown);
    }
}

/// Pages follow each other in both directions, and say whether there are more.
#[tokio::test]
async fn anthropics_clients_page_through_the_list() {
    let lab = Lab::new().await;
    let whole = anthropic(&lab, "?limit=1000").await.json();
    let all = ids(&whole);
    assert_eq!(whole["has_more"], false);
    assert_eq!(ids(&anthropic(&lab, "").await.json()).len(), 20, "Anthropic's own limit");
    let (mut read, mut after) = (Vec::new(), String::new());
    loop {
        let page = anthropic(&lab, &format!("?limit=7{after}")).await.json();
        let shown = ids(&page);
        assert_eq!(page["first_id"], shown[0]);
        after = format!("&after_id={}", page["last_id"].as_str().unwrap());
        read.extend(shown);
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(read, all);
    let page = anthropic(&lab, &format!("?limit=3&before_id={}", all[5])).await.json();
    assert_eq!((ids(&page).as_slice(), &page["has_more"]), (&all[2..5], &true.into()));
    let page = anthropic(&lab, &format!("?limit=3&before_id={}", all[2])).await.json();
    assert_eq!((ids(&page).as_slice(), &page["has_more"]), (&all[..2], &false.into()));
    let both = format!("?after_id={}&before_id={}", all[0], all[2]);
    for wrong in ["?limit=0", "?limit=1001", "?limit=x", "?after_id=none", "?before_id=", &both] {
        let got = anthropic(&lab, wrong).await;
        assert_eq!(got.status.as_u16(), 400, "{wrong}: {}", got.text());
        assert_eq!(got.json()["error"]["type"], "invalid_request_error", "{wrong}");
    }
}

/// A list is read-only; the error is in the client's dialect.
#[tokio::test]
async fn models_are_only_read() {
    let lab = Lab::new().await;
    for path in ["/v1/models", "/v1/models/gemini-3.6-flash"] {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let got = lab.send(method.clone(), path, &[], "{}").await;
            assert_eq!(got.status.as_u16(), 405, "{method} {path}: {}", got.text());
            assert_eq!(got.header("allow"), Some("GET, HEAD"));
            assert_eq!(got.json()["error"]["code"], Value::Null, "not a missing model");
            let got = lab.send(method.clone(), path, &VERSION, "{}").await;
            assert_eq!(got.status.as_u16(), 405, "{method} {path}: {}", got.text());
            assert_eq!(got.json()["error"]["type"], "invalid_request_error", "{}", got.text());
        }
        let got = lab.send(Method::HEAD, path, &[], "").await;
        assert!(got.status.is_success() && got.body.is_empty(), "{}", got.text());
    }
}
