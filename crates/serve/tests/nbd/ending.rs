//! The end of serving.

use crate::client::{Client, serve};
use diskperf_serve::ServedOptions;

/// The longest service time that the catalogue allows.
const SLOW: &str = "drive.service_ms=10000";

#[test]
fn requests_in_flight_are_answered_with_the_end() {
    // A request takes hours.
    let options = ServedOptions {
        speed: 0.001,
        ..ServedOptions::default()
    };
    let mut fixture = serve("fixed", &[SLOW], &options);
    let path = fixture.path();
    let mut clients = [Client::simple(&fixture), Client::structured(&fixture)];
    for client in &mut clients {
        for cookie in 0..32 {
            client.request(0, 0, cookie, (0, 4096));
        }
    }
    // Requests are read in order: that of the last cookie is in flight when a refused one
    // behind it is answered.
    for client in &mut clients {
        client.request(42, 0, 99, (0, 0));
        assert_eq!(client.answer(0).cookie, 99);
    }
    fixture.server.end();
    for client in &mut clients {
        let mut cookies: Vec<_> = (0..32)
            .map(|_| {
                let answer = client.answer(0);
                assert_eq!(answer.error, 108);
                answer.cookie
            })
            .collect();
        cookies.sort_unstable();
        assert_eq!(cookies, (0..32).collect::<Vec<_>>());
        assert!(client.is_closed());
    }
    assert!(!path.exists(), "the socket is removed");
    assert!(!fixture.served.drive.is_running());
}

#[test]
fn a_client_in_the_handshake_is_closed() {
    let mut fixture = serve("fixed", &[], &ServedOptions::default());
    let mut client = fixture.connect();
    client.greet();
    fixture.server.end();
    assert!(client.is_closed());
}

#[test]
fn a_client_that_takes_no_answers_does_not_hold_up_the_end() {
    let mut fixture = serve(
        "fixed",
        &["drive.service_ms=0.000001"],
        &ServedOptions::default(),
    );
    let mut client = Client::simple(&fixture);
    for cookie in 0..8 {
        client.request(0, 0, cookie, (0, 8 << 20));
    }
    // Part of the first answer: the others are under way.
    client.receive(16);
    fixture.server.end();
}
