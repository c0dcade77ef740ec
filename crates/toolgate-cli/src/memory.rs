//! Memory allocator.

/// A request is many small pieces that live on one thread, and bodies of up to megabytes that come
/// and go: the system's allocator locks for the former and gives the latter back page by page. The
/// bench (`cargo xtask bench`) shows what this one saves; libraries leave the choice to programs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The option's number in mimalloc's own list, which has no name for it in Rust.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// Delay in milliseconds before freed memory is returned to the system: bodies of megabytes follow each
/// other, and the system must clear returned memory again.
const KEPT: std::ffi::c_long = 1000;

/// Keeps freed memory for the next request. To be called at the start.
#[expect(unsafe_code, reason = "mimalloc has no other name for it")]
pub(crate) fn prepare() {
    // SAFETY: it takes no pointers, and only sets a number that the allocator looks at later.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, KEPT) }
}

/// Gives the memory that this thread has freed back to the system, which the allocator does not do
/// by itself while nothing is asked of it.
#[expect(unsafe_code, reason = "mimalloc has no other name for it")]
pub(crate) fn give_back() {
    // SAFETY: it takes no pointers, may be called at any time on any thread, and moves nothing that
    // is in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
