//! Kirkendall 1989: the card of the Atari ST under Minix.

use diskperf_analysis::accuracy::{AccuracyCard, CellRole};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_laboratory::reproduce::{ReproduceOptions, reproduce};

fn card(settings: &[(&str, &str)]) -> AccuracyCard {
    let setting = |(path, text): &(&str, &str)| Setting {
        path: (*path).to_owned(),
        value_text: (*text).to_owned(),
    };
    let options = ReproduceOptions {
        documents: vec!["kirkendall-1989".to_owned()],
        settings: settings.iter().map(setting).collect(),
        ..ReproduceOptions::default()
    };
    reproduce(&Catalogue::embedded(), &options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn nine_tenths_of_the_cells_are_within_ten_per_cent() {
    let card = card(&[]);
    let scored: Vec<_> = card
        .cells
        .iter()
        .filter(|cell| cell.counts_in_score())
        .collect();
    assert_eq!((card.cells.len(), scored.len()), (42, 30));
    let near = |cell: &&&_| -> bool {
        let cell: &diskperf_analysis::accuracy::AccuracyCell = cell;
        cell.error.is_some_and(|error| error.abs() <= 0.10)
    };
    assert!(scored.iter().filter(near).count() >= 27);
    assert!(
        card.accuracy_bars.iter().all(|bar| bar.is_met),
        "{:?}",
        card.accuracy_bars
    );
    assert!(card.parameters.calibrated_count <= 9);
    let predicted = scored
        .iter()
        .filter(|cell| cell.role == CellRole::Prediction);
    assert!(predicted.count() >= 15, "most cells were not looked at");
    // What nobody measured stands under the card.
    let findings: usize = card.statements.iter().map(|one| one.findings.len()).sum();
    assert!(findings > 40, "{findings}");
}

#[test]
fn the_drive_s_period_is_what_the_blocks_wait_for() {
    let rate = |card: &AccuracyCard, id: &str| {
        let cell = card.cells.iter().find(|cell| cell.id.ends_with(id));
        cell.and_then(|cell| cell.modelled_value)
            .expect("a modelled cell")
    };
    let before = card(&[]);
    let slower = card(&[("drive.spindle_rpm", "2500")]);
    for id in ["test-4/512", "test-5/16384"] {
        let share = rate(&slower, id) / rate(&before, id);
        assert!((share - 2500.0 / 2735.5).abs() < 0.03, "{id}: {share}");
    }
    // The software alone does not notice.
    let id = "test-3/512";
    assert_eq!(rate(&slower, id), rate(&before, id));
}
