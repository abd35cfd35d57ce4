//! The real program as a server, with a client connected.

use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::client::{Client, Pending};
use super::reply::Reply;
use super::wire::{Tap, Wire};
use super::{DataDir, LIMIT, Options, processes, program, wait_for, walk};

/// Servers, and with them browsers, at one time: the machine is small and launching is heavy.
static ROOM: Semaphore = Semaphore::const_new(4);

/// A running server.
pub struct Server {
    client: Client,
    running: Running,
    stderr: Lines,
    // After `running`: a directory can be removed once nobody writes to it.
    data: DataDir,
    address: Option<SocketAddr>,
    _room: SemaphorePermit<'static>,
}

/// The server's process. A test that just drops it leaves no browser and no file behind either.
struct Running {
    child: Child,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(pid) = self.child.id().filter(|_| !self.ended) else { return };
        let family = processes::descendants(pid);
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                // What cannot be killed is for the tests of lifetimes to find.
                let _ = self.child.kill().await;
                let _ = tokio::time::timeout(LIMIT, processes::gone(&family)).await;
            });
        });
    }
}

/// How a server ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stderr: String,
    pub data: DataDir,
}

impl Server {
    /// # Panics
    /// When it does not come up.
    pub async fn start(options: Options) -> Self {
        let room = ROOM.acquire().await.expect("the semaphore is never closed");
        let path = options.program.clone().unwrap_or_else(program::path);
        let mut command = program::command(&path, &options.command_line());
        command.envs(options.environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = Lines::follow(child.stderr.take().expect("stderr is piped"));
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let listens = options.http || options.arguments.iter().any(|argument| argument == "--metrics");
        let address = if listens { Some(stderr.address().await) } else { None };
        let client = match address {
            Some(address) if options.http => connect_http(address, "").await,
            _ => connect_stdio(stdout, stdin, &stderr).await,
        };
        Self { client, running: Running { child, ended: false }, stderr, data: options.data, address, _room: room }
    }

    /// Another client of a server that speaks HTTP.
    pub async fn another_client(&self) -> Client {
        connect_http(self.address(), "").await
    }

    /// Another client, whose address of `/mcp` has a query.
    pub async fn client_that_asks(&self, query: &str) -> Client {
        connect_http(self.address(), query).await
    }

    /// Where it listens.
    ///
    /// # Panics
    /// When it was not asked to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.expect("the server was asked to listen")
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.child.id().expect("the server runs")
    }

    #[must_use]
    pub fn data_dir(&self) -> &DataDir {
        &self.data
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What it has said on stderr.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    pub async fn begin(&self, tool: &str, arguments: Value) -> Pending {
        self.client.begin(tool, arguments).await
    }

    /// Begins a call on a session and waits until its lane has let it in.
    pub async fn begin_running(&self, tool: &str, arguments: Value) -> Pending {
        let entered = json!({"session_id": arguments["session_id"], "kinds": ["call.entered"]});
        let let_in = || async {
            let events = walk::all(self, "list_events", "events", entered.clone(), 500).await;
            events.iter().filter(|event| event["data"]["tool"] == tool).count()
        };
        let before = let_in().await;
        let pending = self.begin(tool, arguments).await;
        wait_for("the call to be let in", || async { (let_in().await > before).then_some(()) }).await;
        pending
    }

    /// # Panics
    /// When there is no reply, or one that breaks a rule of all replies.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.begin(tool, arguments).await.reply().await
    }

    /// The data of a call that succeeds.
    ///
    /// # Panics
    /// When it does not.
    pub async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.ok_reply(tool, arguments).await.structured["data"].take()
    }

    /// As [`Server::ok`], with the whole reply.
    pub async fn ok_reply(&self, tool: &str, arguments: Value) -> Reply {
        let reply = self.call(tool, arguments.clone()).await;
        assert!(!reply.is_error, "{tool} {arguments}: {}", reply.structured);
        assert_eq!(reply.operation("outcome"), "completed", "{}", reply.structured);
        assert_eq!(reply.operation("retry"), "not_needed", "{}", reply.structured);
        reply
    }

    /// The envelope of a call that fails with `code`.
    ///
    /// # Panics
    /// When it does not.
    pub async fn fault(&self, tool: &str, arguments: Value, code: &str) -> Value {
        let reply = self.call(tool, arguments.clone()).await;
        assert_eq!(reply.code(), code, "{tool} {arguments}: {}", reply.structured);
        reply.structured
    }

    /// A session with nothing asked for.
    pub async fn launch(&self) -> String {
        let data = self.ok("launch_session", json!({"slug": "test"})).await;
        data["session_id"].as_str().expect("a session id").to_owned()
    }

    /// A session that has gone to `url`.
    pub async fn launch_at(&self, url: &str) -> String {
        let session_id = self.launch().await;
        self.ok("navigate", json!({"session_id": session_id, "url": url})).await;
        session_id
    }

    /// The client goes away in order: a server on stdio ends by itself, one on HTTP is told to.
    pub async fn stop(self) -> Ended {
        let pid = self.pid();
        let Self { client, running, stderr, data, address, _room } = self;
        client.close().await;
        if address.is_some() {
            processes::signal(pid, "TERM").await;
        }
        ended(running, stderr, data).await
    }

    /// The server is killed at this very moment.
    pub async fn kill(self) -> Ended {
        let Self { client, mut running, stderr, data, address: _, _room } = self;
        running.child.start_kill().expect("it runs");
        let ended = ended(running, stderr, data).await;
        drop(client);
        ended
    }

    /// The server gets a signal, with its client still connected.
    pub async fn signal(self, name: &str) -> Ended {
        processes::signal(self.pid(), name).await;
        let Self { client, running, stderr, data, address: _, _room } = self;
        let ended = ended(running, stderr, data).await;
        drop(client);
        ended
    }
}

/// # Panics
/// When the server does not end in time.
async fn ended(mut running: Running, stderr: Lines, data: DataDir) -> Ended {
    let status = tokio::time::timeout(LIMIT, running.child.wait()).await;
    let status =
        status.unwrap_or_else(|_| panic!("the server does not end: {}", stderr.text())).expect("it can be waited for");
    running.ended = true;
    stderr.end().await;
    Ended { status, stderr: stderr.text(), data }
}

async fn connect_stdio(stdout: ChildStdout, stdin: ChildStdin, stderr: &Lines) -> Client {
    let wire = Wire::default();
    let connected = ().serve((Tap::new(stdout, wire.clone()), stdin)).await;
    let running = connected.unwrap_or_else(|error| panic!("no handshake: {error}\n{}", stderr.text()));
    Client::new(running, wire)
}

async fn connect_http(address: SocketAddr, query: &str) -> Client {
    // A proxy of the environment has no business on loopback.
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("an HTTP client");
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp{query}"));
    let transport = StreamableHttpClientTransport::with_client(http, config);
    Client::new(().serve(transport).await.expect("the handshake over HTTP"), Wire::default())
}

/// The lines of stderr so far, and whether more may come.
#[derive(Clone)]
struct Lines {
    text: Arc<Mutex<String>>,
    /// Changes with each line; its sender is gone when the stream is.
    news: watch::Receiver<usize>,
}

impl Lines {
    fn follow(stderr: ChildStderr) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let (sender, news) = watch::channel(0);
        let kept = text.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_str(&line);
                kept.push('\n');
                sender.send_modify(|count| *count += 1);
            }
        });
        Self { text, news }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn end(&self) {
        let mut news = self.news.clone();
        // A browser that outlives its server would hold the stream open: that is not waited for.
        let _ = tokio::time::timeout(Duration::from_secs(1), async { while news.changed().await.is_ok() {} }).await;
    }

    async fn address(&self) -> SocketAddr {
        let mut news = self.news.clone();
        let found = async {
            loop {
                let text = self.text();
                let said = text.split_once("listening address=").and_then(|(_, rest)| rest.split_whitespace().next());
                if let Some(address) = said {
                    return address.parse().expect("the server says an address");
                }
                assert!(news.changed().await.is_ok(), "the server ends before it listens: {text}");
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("the server says where it listens")
    }
}
