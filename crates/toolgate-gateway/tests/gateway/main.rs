//! The gateway through real sockets, before the simulator.

mod admission;
mod embedded;
mod endpoints;
mod guards;
mod harness;
mod liveness;
mod models;
mod native;
mod scenarios;
mod serving;
mod turns;
