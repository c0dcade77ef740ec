//! Stores in folders of their own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use toolgate_store::{Content, Item, Location, Metrics, Options, Store};

pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A folder that is removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-store-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("state.db")
    }

    pub(crate) fn location(&self) -> Location {
        Location::Sqlite(self.file())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn options(max_bytes: u64) -> Options {
    Options {
        max_bytes,
        retention: LONG,
        new_secret: [7; 32],
        may_start_away: false,
        metrics: Metrics::default(),
    }
}

pub(crate) async fn open(location: &Location, max_bytes: u64) -> Store {
    Store::open(location, options(max_bytes)).await.unwrap().0
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) fn contents(keys: &[&str], limit: usize) -> Vec<Content> {
    names(keys).into_iter().map(|key| Content { key, limit }).collect()
}

/// The values of items, as text.
pub(crate) fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| String::from_utf8(item.value.to_vec()).unwrap()).collect()
}
