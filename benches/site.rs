//! A few pages on loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Serves until the process ends; returns the address.
pub fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut path = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                path = rest.split(' ').next().unwrap_or_default().to_owned();
            }
            if line == "\r\n" {
                break;
            }
        }
        let body = page(&path);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

fn page(path: &str) -> String {
    let content = match path {
        "/form" => "<button id=button>Save</button><input id=input>".to_owned(),
        "/thousand" => (0..1000).map(|i| format!("<li><a href='/x{i}'>Link number {i}</a></li>")).collect(),
        _ => "<h1>Static</h1><p>Nothing moves here.</p>".to_owned(),
    };
    format!("<!doctype html><title>Bench</title><link rel=icon href=data:,>{content}")
}
