//! The cells that a calibration asks for.

use diskperf_catalogue::{Catalogue, Setting};
use diskperf_laboratory::reproduce::{ModelledCell, run_cells};

const READ: &str = "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/1";
const PAIR: &str = "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/write_4096/2";

fn setting(path: &str, text: &str) -> Setting {
    Setting {
        path: path.to_owned(),
        value_text: text.to_owned(),
    }
}

#[test]
fn cells_come_in_the_order_asked_for_whatever_the_threads() {
    let catalogue = Catalogue::embedded();
    let ids = [PAIR, READ, &format!("{READ}#cpu")];
    let one = run_cells(&catalogue, &[], &ids, 1).unwrap();
    let two = run_cells(&catalogue, &[], &ids, 2).unwrap();
    assert_eq!(one, two);
    let names: Vec<&str> = one.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(names, ids);
    assert_eq!(one[1].kb_per_s, one[2].kb_per_s);
    for ModelledCell {
        id,
        kb_per_s,
        cpu_percent,
    } in &one
    {
        assert!((50.0..5000.0).contains(kb_per_s), "{id}: {kb_per_s}");
        assert!((1.0..=200.0).contains(cpu_percent), "{id}: {cpu_percent}");
    }
}

#[test]
fn settings_change_cells() {
    let catalogue = Catalogue::embedded();
    let slow = [setting("host.speed", "0.3")];
    let before = run_cells(&catalogue, &[], &[READ], 1).unwrap();
    let after = run_cells(&catalogue, &slow, &[READ], 1).unwrap();
    assert!(
        after[0].kb_per_s < 0.8 * before[0].kb_per_s,
        "{before:?} {after:?}"
    );
}

#[test]
fn what_cannot_be_asked_for_is_said() {
    let catalogue = Catalogue::embedded();
    let error = run_cells(&catalogue, &[], &["nobody/T1"], 1).unwrap_err();
    assert!(
        error.to_string().contains("no document has a cell"),
        "{error}"
    );
    let unknown = [setting("host.sped", "1")];
    let error = run_cells(&catalogue, &unknown, &[READ], 1).unwrap_err();
    assert!(error.to_string().contains("sped"), "{error}");
    assert_eq!(error.exit_code(), 2);
}
