//! Reload on change: files are looked at, and processes with the new code replace the old.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::pool::Pool;

/// Most files that are looked at.
const MAX_FILES: usize = 20_000;

/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 16;

/// Watches the files of a pool. New code is taken only if a process starts with it.
pub(super) async fn run(pool: Arc<Pool>) {
    let mut loaded = look(&pool.options.watch).await;
    let mut before = loaded;
    loop {
        tokio::select! {
            () = pool.stopped.cancelled() => return,
            () = tokio::time::sleep(pool.options.watch_interval) => {}
        }
        let now = look(&pool.options.watch).await;
        // An editor may still be writing: two looks have to agree.
        if now != loaded && now == before {
            loaded = now;
            match pool.start_worker().await {
                Ok((worker, _)) => {
                    worker.connection.close().await;
                    tracing::info!(source = pool.label, "code changed, replacing worker processes");
                    pool.code.send_modify(|count| *count += 1);
                }
                Err(failure) => tracing::warn!(
                    source = pool.label,
                    fault = failure.kind(),
                    "changed code does not start, keeping the old"
                ),
            }
        }
        before = now;
    }
}

/// Returns a fingerprint of names, sizes and times of all files.
async fn look(paths: &[PathBuf]) -> u64 {
    let paths = paths.to_vec();
    tokio::task::spawn_blocking(move || {
        let mut hasher = DefaultHasher::new();
        let mut left = MAX_FILES;
        for path in &paths {
            add(path, 0, &mut left, &mut hasher);
        }
        hasher.finish()
    })
    .await
    .unwrap_or_default()
}

fn add(path: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let is_noise = name.starts_with('.') || name == "__pycache__" || name.ends_with(".pyc");
    if *left == 0 || depth > MAX_DEPTH || (depth > 0 && is_noise) {
        return;
    }
    let Ok(metadata) = std::fs::metadata(path) else { return };
    if metadata.is_dir() {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        let mut entries: Vec<_> = entries.flatten().map(|it| it.path()).collect();
        entries.sort();
        for entry in entries {
            add(&entry, depth + 1, left, hasher);
        }
        return;
    }
    *left -= 1;
    path.hash(hasher);
    metadata.len().hash(hasher);
    metadata.modified().ok().hash(hasher);
}
