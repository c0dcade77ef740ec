//! Failures of disks, locks, files and servers.
