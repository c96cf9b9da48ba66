//! `rota top --web`: the same picture as a page, for browsers of this host. One page and one JSON document,
//! over HTTP/1.1 by hand: it answers two paths to a reader that is polite, and nothing else to anybody.

use super::lookout::{Absent, Lookout};
use super::narrow::Narrow;
use super::picture::Picture;
use rota::Span;
use rota_answer::{Exit, Failure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where it listens when nobody says otherwise.
pub const ADDRESS: &str = "127.0.0.1:8088";
const PAGE: &str = include_str!("page.html");
/// What a browser's request may be long at most.
const REQUEST_OCTETS: u64 = 16 << 10;
/// Readers at a time; each is answered at once and let go.
const READERS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves until it is ended.
///
/// # Errors
/// An address that is not this host's alone, or cannot be listened on.
pub fn run(address: &str, force: bool, every: Span, filter: Narrow) -> Result<Exit, Failure> {
    let address: SocketAddr = address.parse().map_err(|_| {
        Failure::wrong_use(format!(
            "'{address}' is no address with a port, such as {ADDRESS} or [::1]:8088; \
             a filter stands before --web"
        ))
    })?;
    if !address.ip().is_loopback() && !force {
        return Err(Failure::wrong_use(format!(
            "{} can be reached from other hosts, and the page asks for no password; give {ADDRESS}, or \
             --web-anywhere if that is what you want",
            address.ip()
        )));
    }
    let listener = TcpListener::bind(address)
        .map_err(|error| Failure::failed(format!("cannot listen on {address}: {error}")))?;
    let bound = listener.local_addr().map_err(Failure::failed)?;
    eprintln!("http://{bound}/ shows this segment until Ctrl-C");
    let newest = Arc::new(Mutex::new(Arc::<str>::from(json(&Picture::without_node("looking for the node")))));
    let (shared, readers) = (Arc::clone(&newest), Arc::new(()));
    std::thread::spawn(move || look_for_ever(every, filter, &shared));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if Arc::strong_count(&readers) > READERS {
            continue;
        }
        let (newest, reader) = (Arc::clone(&newest), Arc::clone(&readers));
        std::thread::spawn(move || {
            let json = Arc::clone(&newest.lock().unwrap_or_else(PoisonError::into_inner));
            // A reader that has gone away is nobody's trouble.
            let _ = answer(&stream, &json, force);
            drop(reader);
        });
    }
    Ok(Exit::Done)
}

fn json(picture: &Picture) -> String {
    rota_answer::json::document(picture)
}

fn look_for_ever(every: Span, filter: Narrow, newest: &Mutex<Arc<str>>) {
    let mut lookout = Lookout::new(every, filter);
    loop {
        let now = rota::now();
        let picture = lookout.look(now).unwrap_or_else(Absent::picture);
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = json(&picture).into();
        rota::sleep_until(now + every);
    }
}

/// The head of a request: its method, its path, and for whom it was meant.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    method: String,
    path: String,
    host: String,
}

fn read(stream: impl Read) -> std::io::Result<Asked> {
    let mut lines = BufReader::new(stream.take(REQUEST_OCTETS)).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut asked = Asked { method: word(), path: word(), host: String::new() };
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            value.trim().clone_into(&mut asked.host);
        }
    }
    Ok(asked)
}

/// A page of another site may send its readers' browsers here under a name of its own; only who asks for
/// this host by its own name is answered.
fn is_for_this_host(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.chars().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn respond(asked: &Asked, json: &str, force: bool) -> (&'static str, &'static str, String) {
    let plain = "text/plain; charset=utf-8";
    if !force && !is_for_this_host(&asked.host) {
        return ("403 Forbidden", plain, "ask for localhost\n".into());
    }
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET" | "HEAD", "/") => ("200 OK", "text/html; charset=utf-8", PAGE.into()),
        ("GET" | "HEAD", "/picture.json") => ("200 OK", "application/json", json.into()),
        ("GET" | "HEAD", _) => ("404 Not Found", plain, "there is / and /picture.json\n".into()),
        _ => ("405 Method Not Allowed", plain, "only GET\n".into()),
    }
}

fn answer(mut stream: &TcpStream, json: &str, force: bool) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let asked = read(stream)?;
    let (status, kind, body) = respond(&asked, json, force);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
         connect-src 'self'\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    if asked.method == "HEAD" { Ok(()) } else { stream.write_all(body.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        read(text.as_bytes()).unwrap()
    }

    fn status(text: &str) -> &'static str {
        respond(&asked(text), "{}", false).0
    }

    #[test]
    fn two_paths_are_answered_and_nothing_else() {
        let host = "HTTP/1.1\r\nHost: 127.0.0.1:8088\r\n\r\n";
        assert_eq!(status(&format!("GET / {host}")), "200 OK");
        assert_eq!(status(&format!("GET /picture.json {host}")), "200 OK");
        assert_eq!(status(&format!("GET /../etc/passwd {host}")), "404 Not Found");
        assert_eq!(status(&format!("POST / {host}")), "405 Method Not Allowed");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "403 Forbidden", "nobody's host");
        assert_eq!(status("GET / HTTP/1.1\r\nhost: evil.example:8088\r\n\r\n"), "403 Forbidden");
        assert_eq!(status("GET / HTTP/1.1\r\nHOST: [::1]:8088\r\n\r\n"), "200 OK");
        assert_eq!(status(""), "403 Forbidden");
    }

    #[test]
    fn a_request_without_an_end_is_cut() {
        let endless = std::io::repeat(b'x');
        assert_eq!(read(endless).unwrap().method.len() as u64, REQUEST_OCTETS);
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        assert!(!PAGE.contains("http://") && !PAGE.contains("https://") && !PAGE.contains("@import"));
        assert!(PAGE.contains("prefers-color-scheme"));
    }

    #[test]
    fn other_hosts_are_refused_unless_forced() {
        let refused = run("0.0.0.0:0", false, Span::from_millis(500), Narrow::default()).unwrap_err();
        assert!(refused.sentence.contains("--web-anywhere"), "{}", refused.sentence);
        let wrong = run("8088", false, Span::from_millis(500), Narrow::default()).unwrap_err();
        assert!(wrong.sentence.contains("[::1]:8088"), "{}", wrong.sentence);
    }
}
