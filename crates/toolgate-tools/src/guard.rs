//! Ends child processes when this process ends, however it ends.
//!
//! Each child has a process group of its own. A small shell process holds the list of groups and reads
//! its standard input, which only this process can write to. When this process is killed, the pipe
//! closes and the shell kills the groups that are left. Where there is no shell, children see the end of
//! their standard input only, as the MCP specification wants.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Reads `+ GROUP` and `- GROUP`; kills what is left at the end.
const SCRIPT: &str = r#"
set -f
trap '' HUP INT TERM
groups=
while read -r op id; do
    case $op in
    +) groups="$groups $id" ;;
    -) left=
       for group in $groups; do [ "$group" = "$id" ] || left="$left $group"; done
       groups=$left ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

/// Ends process groups when this process ends. Clones share one shell process.
#[derive(Clone, Debug, Default)]
pub struct ProcessGuard {
    shell: Arc<Mutex<Shell>>,
}

#[derive(Debug, Default)]
enum Shell {
    #[default]
    NotStarted,
    Running(Child),
    Missing,
}

impl ProcessGuard {
    pub(crate) fn add(&self, group: i32) {
        self.write(&format!("+ {group}\n"));
    }

    pub(crate) fn remove(&self, group: i32) {
        self.write(&format!("- {group}\n"));
    }

    fn write(&self, line: &str) {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*shell, Shell::NotStarted) {
            *shell = match start() {
                Ok(child) => Shell::Running(child),
                Err(error) => {
                    tracing::warn!(%error, "no shell: children outlive this process if it is killed");
                    Shell::Missing
                }
            };
        }
        if let Shell::Running(child) = &mut *shell {
            let written = child.stdin.as_mut().map(|it| it.write_all(line.as_bytes()));
            if !matches!(written, Some(Ok(()))) {
                tracing::warn!(
                    "process guard ended: children outlive this process if it is killed"
                );
                let _ = child.wait();
                *shell = Shell::Missing;
            }
        }
    }
}

fn start() -> std::io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Self::Running(child) = self {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
