//! A response in the background, and a gateway that is killed in the middle of it.

use serde_json::{Value, json};
use toolgate_sim::{Fault, Script, Sim, SimConfig};

use super::process::{Folder, Toolgate};

/// The next process reports an unfinished background response as failed.
#[tokio::test]
async fn a_killed_gateway_s_response_has_failed_and_says_why() {
    let script = Script::new().text("never").fault(Fault::Stall { after: 0, ms: None }).times(0);
    let sim = Sim::start(SimConfig::scripted(script)).await.unwrap();
    let folder = Folder::new();
    let store = format!("sqlite:{}", folder.path().join("state.db").display());
    let gate = Toolgate::start(&sim.url(), &store);
    let body = json!({"model": "gemini-3-flash", "input": "x", "background": true});
    let queued = gate.post("/v1/responses", &[], &body).await;
    assert_eq!(queued["status"], "queued", "{queued}");
    gate.kill();
    let gate = Toolgate::start(&sim.url(), &store);
    let at = format!("/v1/responses/{}", queued["id"].as_str().unwrap());
    let (_, text) = gate.get(&at).await;
    let failed: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(failed["status"], "failed", "{text}");
    let error =
        json!({"code": "server_error", "message": "the gateway was stopped before the end"});
    assert_eq!(failed["error"], error);
    // Whatever its client has seen of it, the end comes after that.
    for (after, want) in [("", 3), ("&starting_after=0", 2), ("&starting_after=40", 1)] {
        let (status, text) = gate.get(&format!("{at}?stream=true{after}")).await;
        assert_eq!(status, 200, "{text}");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        assert_eq!(events.len(), want, "{after}: {text}");
        let last = events.last().unwrap();
        assert_eq!((&last["type"], &last["response"]), (&"response.failed".into(), &failed));
    }
}
