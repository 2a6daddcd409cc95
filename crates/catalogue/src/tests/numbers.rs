//! The published numbers and the calibration sets.

use super::super::Catalogue;
use super::overlaid;

#[test]
fn all_cells_load_with_their_fields() {
    let published = Catalogue::embedded()
        .published_values()
        .expect("published numbers");
    assert_eq!(published.cells.len(), 405);
    let cell = published
        .find_cell("kridle-mckusick-1983/T1/vax750-uda50-ra81/8K/write_4096/1")
        .expect("a cell");
    assert_eq!(cell.kb_per_s, Some(370.0));
    assert_eq!(cell.cpu_percent, Some(97.0));
    assert_eq!(cell.drives, Some(1));
    assert_eq!(cell.table, "T1");
    assert!(cell.is_unexplained && cell.is_scored && cell.is_measured && !cell.is_suspect);
    assert_eq!(cell.document(), Some("kridle-mckusick-1983"));
    let rate = published
        .find_cell("speck-bass-1984/block-rate/sequential-read-rotdelay-4-ms")
        .expect("a cell");
    assert_eq!(rate.blocks_per_s, Some(40.0));
    assert_eq!((rate.value_min, rate.value_max), (Some(36.0), Some(44.0)));
    assert_eq!(rate.full_target().as_deref(), Some("vax780-si9900-cdc9775"));
    assert_eq!(
        published.document_names().len(),
        5,
        "{:?}",
        published.document_names()
    );
    let error = published
        .cells_of_document("kridle-mckusik-1983")
        .expect_err("misspelt");
    assert!(
        error.to_string().contains("`kridle-mckusick-1983`"),
        "{error}"
    );
}

#[test]
fn ids_are_unique_and_same_as_leads_to_a_cell() {
    let published = Catalogue::embedded()
        .published_values()
        .expect("published numbers");
    let mut ids: Vec<&str> = published
        .cells
        .iter()
        .filter_map(|cell| cell.id.as_deref())
        .collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for cell in &published.cells {
        if let Some(same) = &cell.scored_as {
            let other = published.find_cell(same).expect("the scored cell");
            assert_eq!(other.scored_as, None, "{same}");
        }
    }
}

#[test]
fn a_set_lists_each_measurement_once() {
    let content = "[sets]\n\
        read = ['kridle-mckusick-1983/T*/vax780-sc780-eagle/8K/read_8192/*']\n\
        none = ['kridle-mckusick-1983/T9/*']\n";
    let (_folder, catalogue) = overlaid(&[("published/calibration.toml", content)]);
    let published = catalogue
        .expect("readable")
        .published_values()
        .expect("published numbers");
    let cells = published.calibration_set("read").expect("a set");
    assert_eq!(
        cells,
        [
            "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/1",
            "kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/2",
        ]
    );
    let error = published.calibration_set("none").expect_err("no cell");
    assert!(error.to_string().contains("no cell is"), "{error}");
    let error = published.calibration_set("reed").expect_err("no set");
    assert!(
        error.to_string().contains("did you mean `read`?"),
        "{error}"
    );
}

#[test]
fn a_wrong_value_is_shown_in_its_file() {
    let content = "[[cell]]\nid = 'a/b'\nkb_per_s = 'fast'\nnew_field = 3\n";
    let (_folder, catalogue) = overlaid(&[("published/mine.toml", content)]);
    let error = catalogue
        .expect("readable")
        .published_values()
        .expect_err("text for a number");
    assert!(error.to_string().contains("mine.toml:3:12"), "{error}");
    let right = content.replace("'fast'", "3");
    let (_folder, catalogue) = overlaid(&[("published/mine.toml", &right)]);
    let published = catalogue
        .expect("readable")
        .published_values()
        .expect("unknown fields pass");
    assert_eq!(
        published.find_cell("a/b").and_then(|cell| cell.kb_per_s),
        Some(3.0)
    );
}
