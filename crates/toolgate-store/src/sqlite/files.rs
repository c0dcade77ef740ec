//! Files of a SQLite store: permissions, presence of other processes, damaged files.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::schema::APPLICATION_ID;
use crate::now_millis;

/// What SQLite appends to the name of a database for the files beside it.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Path of a file beside the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Creates folder and file, readable for the user only, and tightens what others could read.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    for suffix in SUFFIXES {
        tighten(&beside(path, suffix))?;
    }
    Ok(())
}

/// Options that create a file for the user only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Takes the permissions of others from a file.
#[cfg(unix)]
fn tighten(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = match path.metadata() {
        Ok(metadata) => metadata.permissions().mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if mode & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700))?;
    tracing::warn!(
        path = %path.display(),
        mode = format!("{:o}", mode & 0o777),
        "state file was accessible to other users, permissions tightened"
    );
    Ok(())
}

#[cfg(not(unix))]
fn tighten(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Lock that all processes share which have a store open.
#[derive(Debug)]
pub(super) struct Presence(File);

impl Presence {
    /// Takes the lock. Returns whether no other process has it; it is exclusive then, until it is
    /// [shared](Self::share).
    pub(super) fn take(path: &Path) -> io::Result<(Self, bool)> {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let file = private(options).open(beside(path, "-lock"))?;
        match file.try_lock() {
            Ok(()) => Ok((Self(file), true)),
            Err(TryLockError::WouldBlock) => {
                // Waits while another process opens the store.
                file.lock_shared()?;
                Ok((Self(file), false))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Lets other processes open the store.
    pub(super) fn share(&self) -> io::Result<()> {
        self.0.lock_shared()
    }
}

/// Renames a database and the files beside it, so that a new one can be created. Returns the new name.
pub(super) fn set_aside(path: &Path, why: &str) -> io::Result<PathBuf> {
    let aside = beside(path, &format!(".{why}-{}", now_millis()));
    for suffix in SUFFIXES {
        match std::fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

/// Whether the header of a file that SQLite cannot read says that it is a store of ours.
pub(super) fn has_our_mark(path: &Path) -> bool {
    // Where SQLite keeps the application id.
    const OFFSET: u64 = 68;
    let read = || -> io::Result<[u8; 4]> {
        let (mut file, mut mark) = (File::open(path)?, [0; 4]);
        file.seek(SeekFrom::Start(OFFSET))?;
        file.read_exact(&mut mark)?;
        Ok(mark)
    };
    read().is_ok_and(|mark| mark == APPLICATION_ID.to_be_bytes())
}

/// Identity of the file at a path, whatever its name; `None` where there is none.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|_| (0, 0))
}
