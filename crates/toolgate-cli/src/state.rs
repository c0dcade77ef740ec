//! Files in the user's state folder that let programs of the same user recognise each other.
//!
//! `run/gateway-ADDRESS` holds the identity secret of the gateway that listens there. The gateway keeps
//! the file locked; a file without a lock is left over from a process that was killed, proves
//! nothing, and is removed by the next gateway. `run/client-token` is the key that `toolgate run`
//! gives to agents; it stays the same, because stored sessions belong to the key that made them.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::process::geteuid;
use toolgate_gateway::config::state_folder;
use toolgate_gateway::identity::IdentitySecret;

use crate::configuration::variable;

const GATEWAY_PREFIX: &str = "gateway-";
const TOKEN_FILE: &str = "client-token";
/// Maximum length of a file here.
const MAX_FILE_BYTES: u64 = 1024;

/// Random bytes as hexadecimal digits.
pub(crate) fn random_hex() -> Result<String> {
    Ok(hex(&random()?))
}

/// 32 random bytes.
pub(crate) fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("no randomness")?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A folder that only the user can read.
#[derive(Debug)]
pub(crate) struct Private(PathBuf);

/// The file of a running gateway; removed when dropped.
#[derive(Debug)]
pub(crate) struct Published {
    path: PathBuf,
    file: File,
}

impl Private {
    /// Opens the folder; creates it if it is missing.
    pub(crate) fn open() -> Result<Self> {
        let folder = state_folder(&variable).context("neither XDG_STATE_HOME nor HOME is set")?;
        Self::at(folder.join("run"))
    }

    fn at(folder: PathBuf) -> Result<Self> {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(&folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        let is = fs::symlink_metadata(&folder)?;
        if !is.is_dir() || is.uid() != geteuid().as_raw() {
            bail!("{} is not this user's folder", folder.display());
        }
        if is.mode() & 0o077 != 0 {
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        }
        Ok(Self(folder))
    }

    fn gateway_file(&self, address: SocketAddr) -> PathBuf {
        self.0.join(format!("{GATEWAY_PREFIX}{address}"))
    }

    /// Publishes the secret of the gateway that listens on `address`.
    pub(crate) fn publish(&self, address: SocketAddr, secret: &[u8; 32]) -> Result<Published> {
        self.sweep();
        let path = self.gateway_file(address);
        // Locked before the rename, so that no other process removes it as stale.
        let (new, file) = self.create(&hex(secret))?;
        let placed = file.lock().and_then(|()| fs::rename(&new, &path));
        if placed.is_err() {
            let _ = fs::remove_file(&new);
        }
        placed.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Published { path, file })
    }

    /// The secret that a gateway on `address` must have.
    pub(crate) fn secret(&self, address: SocketAddr) -> Option<IdentitySecret> {
        let text = read(&self.gateway_file(address)).ok()?;
        from_hex(text.trim()).map(IdentitySecret::new)
    }

    /// File of the key that agents present.
    pub(crate) fn token_path(&self) -> PathBuf {
        self.0.join(TOKEN_FILE)
    }

    /// Returns the key that agents present; generates it the first time.
    pub(crate) fn client_token(&self) -> Result<String> {
        let path = self.token_path();
        if !path.exists() {
            let (new, _) = self.create(&format!("tg-run-{}", random_hex()?))?;
            // Of two processes that do this at the same time, the first wins.
            let _ = fs::hard_link(&new, &path);
            fs::remove_file(&new)?;
        }
        let token = read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let token = token.trim();
        if token.len() < 32 {
            bail!("{} holds no token; remove it", path.display());
        }
        Ok(token.to_owned())
    }

    fn create(&self, text: &str) -> Result<(PathBuf, File)> {
        let path = self.0.join(format!("new-{}", random_hex()?));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok((path, file))
    }

    /// Removes files of gateways that are gone.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(GATEWAY_PREFIX)
                && let Ok(file) = File::open(entry.path())
                && file.try_lock().is_ok()
                && is_same(&file, &entry.path())
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        if is_same(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` still names this file.
fn is_same(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

/// Reads a file that only the user can have written and read.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let is = file.metadata()?;
    if !is.is_file() || is.uid() != geteuid().as_raw() || is.mode() & 0o077 != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may read or write it"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A private folder, removed when dropped.
    struct Scratch(Private);

    impl Scratch {
        fn new() -> Self {
            let folder = std::env::temp_dir().join(format!("toolgate-{}", random_hex().unwrap()));
            Self(Private::at(folder).unwrap())
        }

        fn mode(&self, name: &str) -> u32 {
            fs::metadata(self.0.0.join(name)).unwrap().mode() & 0o777
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.0);
        }
    }

    #[test]
    fn secrets_are_private_and_gone_with_their_gateway() {
        let scratch = Scratch::new();
        let folder = &scratch.0;
        let (one, two) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        let published = folder.publish(one, &[1; 32]).unwrap();
        assert!(folder.secret(one).is_some() && folder.secret(two).is_none());
        assert_eq!((scratch.mode(""), scratch.mode("gateway-127.0.0.1:1")), (0o700, 0o600));
        // One that was killed left its file without a lock; one that runs has its own.
        fs::write(folder.gateway_file(two), "left over").unwrap();
        let three = folder.publish("127.0.0.1:3".parse().unwrap(), &[3; 32]).unwrap();
        assert!(!folder.gateway_file(two).exists() && folder.secret(one).is_some());
        // A newer gateway's file stays when the older one ends.
        let newer = folder.publish(one, &[2; 32]).unwrap();
        drop(published);
        assert!(folder.secret(one).is_some());
        drop((newer, three));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn what_others_can_read_is_not_used() {
        let scratch = Scratch::new();
        let address = "127.0.0.1:1".parse().unwrap();
        let _published = scratch.0.publish(address, &[1; 32]).unwrap();
        let path = scratch.0.gateway_file(address);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(scratch.0.secret(address).is_none());
        fs::set_permissions(&scratch.0.0, Permissions::from_mode(0o755)).unwrap();
        assert!(Private::at(scratch.0.0.clone()).is_ok());
        assert_eq!(scratch.mode(""), 0o700, "closed again");
    }

    #[test]
    fn the_client_token_stays_the_same() {
        let scratch = Scratch::new();
        let token = scratch.0.client_token().unwrap();
        assert!(token.starts_with("tg-run-") && token.len() > 64, "{token}");
        assert_eq!(scratch.0.client_token().unwrap(), token);
        assert_eq!(scratch.mode(TOKEN_FILE), 0o600);
        assert_eq!(fs::read_dir(&scratch.0.0).unwrap().count(), 1);
    }
}
