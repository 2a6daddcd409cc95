//! The accuracy card on the command line. What is in it is tested in the
//! laboratory.

use crate::support::User;
use serde_json::Value;

const CELLS: &str = "*T?/vax780-sc780-eagle/8K/read_8192/1";
const ID: &str = "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/1";

#[test]
fn the_json_contract() {
    let user = User::new();
    let words = [
        "reproduce",
        "kridle-mckusick-1983",
        "--cell",
        CELLS,
        "--format",
        "json",
    ];
    let json = user.run(&words).expect(0, &[]).json();
    let list = json["parameters"]["list"].as_array().unwrap();
    assert_eq!(json["parameters"]["calibrated"], list.len());
    for parameter in list {
        for key in ["path", "file", "value", "source"] {
            assert!(parameter[key].is_string(), "{key} of {parameter}");
        }
        assert!(parameter["cells"].is_array(), "{parameter}");
    }
    let cells = json["cells"].as_array().unwrap();
    let fields = [
        "id",
        "published",
        "table",
        "target",
        "quantity",
        "printed",
        "printed_low",
        "printed_high",
        "modelled",
        "error",
        "scored",
        "same_as",
        "role",
        "phases",
        "seeds",
        "spread",
        "note",
    ];
    for cell in cells {
        for field in fields {
            assert!(cell.get(field).is_some(), "{field} of {cell}");
        }
    }
    let find = |id: &str| cells.iter().find(|cell| cell["id"] == id).unwrap();
    let rate = find(ID);
    assert_eq!(rate["printed"], 560.0);
    assert_eq!(rate["quantity"], "kb_per_s");
    let (modelled, error) = (
        rate["modelled"].as_f64().unwrap(),
        rate["error"].as_f64().unwrap(),
    );
    assert!((modelled / 560.0 - 1.0 - error).abs() < 1e-12, "{rate}");
    let share = find(&format!("{ID}#cpu"));
    assert_eq!(share["quantity"], "cpu_percent");
    // As csh prints it.
    let modelled = share["modelled"].as_f64().unwrap().floor();
    let points = modelled - share["printed"].as_f64().unwrap();
    assert_eq!(share["error"], points, "{share}");
    let twice = cells
        .iter()
        .find(|cell| cell["table"] == "T4" && cell["quantity"] == "kb_per_s");
    assert_eq!(twice.map(|cell| &cell["same_as"]), Some(&Value::from(ID)));
}

#[test]
fn every_format_has_every_cell() {
    let user = User::new();
    for format in ["table", "csv", "markdown"] {
        let words = [
            "reproduce",
            "--cell",
            CELLS,
            "--format",
            format,
            "--threads",
            "2",
        ];
        user.run(&words)
            .expect(0, &[])
            .shows(&["T2", "T4", "T5", "560"]);
    }
    let csv = user.run(&["reproduce", "--table", "text", "--format", "csv"]);
    let csv = csv.expect(0, &[]).shows(&["speck-bass-1984", "ratio"]);
    assert_eq!(csv.stdout.lines().count(), 4, "{}", csv.stdout);
}
