//! Choice between Gemini and the simulator.

use std::error::Error;

use toolgate::Client;
use toolgate_sim::{RunningSim, Script, Sim, SimConfig};

/// Returns a client, and the simulator that it depends on.
pub(crate) async fn client(script: Script) -> Result<(Client, Option<RunningSim>), Box<dyn Error>> {
    if let Ok(client) = Client::from_env() {
        return Ok((client, None));
    }
    let sim = Sim::start(SimConfig::scripted(script)).await?;
    let client = Client::builder().api_key("none").base_url(sim.url()).build()?;
    Ok((client, Some(sim)))
}
