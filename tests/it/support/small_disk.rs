//! A small file system of its own that a test can fill to the last byte and empty again.
//!
//! Root mounts it. Anybody else gets one in a user namespace: a process that does nothing holds the
//! namespace, servers are started inside it, and files are seen through the holder's root.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use super::{DataDir, Options, processes, program};

/// A mounted file system; gone with the value.
pub struct SmallDisk {
    /// As this process sees it.
    seen: PathBuf,
    data: DataDir,
    held: Held,
    _directory: TempDir,
}

enum Held {
    /// By the system's own table of mounts.
    Mount,
    /// By a process in a namespace of its own, which ends with its standard input.
    Namespace { holder: Child, _input: Option<ChildStdin>, program: PathBuf },
}

impl SmallDisk {
    /// In memory.
    ///
    /// # Panics
    /// When this machine gives neither root nor user namespaces.
    #[must_use]
    pub fn tmpfs(mebibytes: u64) -> Self {
        let directory = Self::directory();
        let mount = directory.path().join("disk");
        std::fs::create_dir(&mount).expect("a mount point is made");
        let options = format!("size={mebibytes}m,mode=700");
        if processes::is_root() {
            run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", text(&mount)]);
            return Self::mounted(directory, mount);
        }
        Self::in_namespace(directory, &mount, &options)
    }

    /// ext4 in a file; `None` where only tmpfs can be had.
    #[must_use]
    pub fn ext4(mebibytes: u64) -> Option<Self> {
        if !processes::is_root() {
            return None;
        }
        let directory = Self::directory();
        let (image, mount) = (directory.path().join("image"), directory.path().join("disk"));
        std::fs::create_dir(&mount).expect("a mount point is made");
        File::create(&image).and_then(|file| file.set_len(mebibytes << 20)).expect("an image is made");
        run("mkfs.ext4", &["-q", "-F", text(&image)]);
        run("mount", &["-o", "loop", text(&image), text(&mount)]);
        Some(Self::mounted(directory, mount))
    }

    fn directory() -> TempDir {
        tempfile::Builder::new().prefix("pageledger-disk-").tempdir().expect("a temporary directory")
    }

    fn mounted(directory: TempDir, mount: PathBuf) -> Self {
        Self { data: DataDir::kept(mount.join("data")), seen: mount, held: Held::Mount, _directory: directory }
    }

    fn in_namespace(directory: TempDir, mount: &Path, options: &str) -> Self {
        let script = r#"mount -t tmpfs -o "$2" tmpfs "$1" && echo mounted && exec cat"#;
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", text(mount), options])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare(1) is there");
        let input = holder.stdin.take();
        let mut said = String::new();
        BufReader::new(holder.stdout.take().expect("it is piped")).read_line(&mut said).expect("it can be read");
        assert_eq!(said, "mounted\n", "neither root nor user namespaces: no small file system can be had here");
        let pid = holder.id();
        // `nsenter` becomes the server, which so keeps the number that the test knows it by.
        let program = directory.path().join("inside");
        let own = program::path();
        let script = format!(
            "#!/bin/sh\nexec nsenter --target {pid} --user --mount --preserve-credentials {} \"$@\"\n",
            text(&own)
        );
        std::fs::write(&program, script).expect("a script is written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).expect("it can be run");
        let seen = PathBuf::from(format!("/proc/{pid}/root{}", text(mount)));
        let held = Held::Namespace { holder, _input: input, program };
        Self { seen, data: DataDir::kept(mount.join("data")), held, _directory: directory }
    }

    /// `options` for a server whose data directory lies on this disk.
    #[must_use]
    pub fn serving(&self, options: Options) -> Options {
        let program = match &self.held {
            Held::Mount => None,
            Held::Namespace { program, .. } => Some(program.clone()),
        };
        Options { program, ..options.on(&self.data) }
    }

    /// The data directory, as this process sees it.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.seen.join("data")
    }

    /// What is left to others than root.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let facts = rustix::fs::statvfs(&self.seen).expect("it is mounted");
        facts.f_bavail * facts.f_frsize
    }

    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let facts = rustix::fs::statvfs(&self.seen).expect("it is mounted");
        facts.f_blocks * facts.f_frsize
    }

    fn filler(&self) -> File {
        let path = self.seen.join("filler");
        OpenOptions::new().create(true).append(true).open(path).expect("the filler can be opened")
    }

    /// Fills or empties the disk until just `bytes` are free.
    pub fn leave_free(&self, bytes: u64) {
        let (mut filler, free) = (self.filler(), self.free_bytes());
        if free < bytes {
            let length = filler.metadata().expect("it is there").len();
            filler.set_len(length.saturating_sub(bytes - free)).expect("it can be cut");
            return;
        }
        let zeros = vec![0; 64 * 1024];
        let mut left = free - bytes;
        while left > 0 {
            let count = left.min(zeros.len() as u64);
            filler.write_all(&zeros[..count as usize]).expect("there is room");
            left -= count;
        }
    }

    /// Fills the disk until not one byte more can be written.
    pub fn fill(&self) {
        let mut filler = self.filler();
        let mut count = 64 * 1024;
        let zeros = vec![0; count];
        // What is written before a refusal stays; smaller pieces fill what is left.
        while count > 0 {
            if filler.write_all(&zeros[..count]).is_err() {
                count /= 2;
            }
        }
    }

    /// Gives all the room back.
    pub fn empty(&self) {
        self.filler().set_len(0).expect("it can be cut");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        match &mut self.held {
            // What still uses it keeps it until it ends.
            Held::Mount => {
                let _ = Command::new("umount").arg("-l").arg(&self.seen).status();
            }
            Held::Namespace { holder, .. } => {
                let _ = holder.kill();
                let _ = holder.wait();
            }
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    // Administrators' tools are not on every path.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}
