//! Sessions: what a gateway remembers between requests, through real sockets, on the simulator.

mod sessions {
    mod conversations;
    mod sockets;
    mod stored;
    mod support;
    mod threads;
}
