use super::super::tests::{all_charts, rows};
use super::*;
use serde_json::json;

/// The marks of the rows, by the beginnings of their elements.
fn marks(svg: &str) -> usize {
    let (_, from) = svg
        .split_once("<g class=\"rows_marks\">")
        .expect("the rows are drawn");
    let (group, _) = from.split_once("</g>").expect("the group ends");
    group.matches("<rect").count() + group.matches("<circle").count()
}

#[test]
fn every_chart_has_a_mark_for_each_row() {
    let charts = all_charts();
    for kind in [
        "throughput-",
        "call-sizes-",
        "latency-",
        "repetitions-",
        "pair-",
        "ledger-",
        "tuning",
    ] {
        assert!(
            charts.iter().any(|chart| chart.name.starts_with(kind)),
            "{kind}"
        );
    }
    for chart in &charts {
        let svg = draw_chart(chart);
        assert_eq!(marks(&svg), rows(chart).len(), "{}: {svg}", chart.name);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(
            svg.matches("<g").count(),
            svg.matches("</g>").count(),
            "{svg}"
        );
    }
}

#[test]
fn a_bar_is_as_long_as_its_share_of_the_longest() {
    let row =
        |name: &str, from: f64, until: f64| json!({ "stage": name, "from": from, "until": until });
    let spec = json!({
        "height": 100,
        "encoding": { "y": { "field": "stage", "type": "nominal" } },
        "layer": [{
            "name": ROWS_DATASET,
            "mark": { "type": "bar" },
            "encoding": {
                "x": { "field": "from", "type": "quantitative", "title": "ms" },
                "x2": { "field": "until" },
            },
        }],
        "data": { "values": [row("seek", 0.0, 25.0), row("<read>", 25.0, 100.0)] },
    });
    let drawing = StillDrawing::from_spec(&spec, CHART_WIDTH_NARROW);
    assert_eq!(
        drawing.x_position(&json!(25.0)),
        Some(drawing.plot_width / 4.0)
    );
    assert_eq!(drawing.y_position(&json!("<read>")), Some(75.0));
    let svg = marks::draw_layer(&drawing, &drawing.layers[0]);
    let quarter = format!("width=\"{:.1}\"", drawing.plot_width / 4.0);
    assert!(svg.contains(&quarter), "{svg}");
    let axes = axes::draw_axes(&drawing);
    assert!(
        axes.contains("&lt;read&gt;") && axes.contains(">ms<"),
        "{axes}"
    );
}

#[test]
fn numbers_are_short() {
    let axis = json!({ "labelExpr": "format(100 - 100 * datum.value, '~r') + '%'" });
    assert_eq!(axes::format_axis_number(&axis, 0.001), "99.9%");
    let bytes =
        json!({ "labelExpr": "datum.value < 1024 ? datum.value : datum.value / 1024 + 'K'" });
    assert_eq!(axes::format_axis_number(&bytes, 512.0), "512");
    assert_eq!(axes::format_axis_number(&bytes, 8192.0), "8K");
    for (value, text) in [
        (0.0, "0"),
        (0.001, "0.001"),
        (2.5, "2.5"),
        (9000.0, "9000"),
        (25e6, "25M"),
        (-20.0, "-20"),
    ] {
        assert_eq!(axes::format_short_number(value), text);
    }
}

#[test]
fn tests_of_rows_are_understood() {
    let row = json!({ "mark": "best", "share": 0.7, "low": null });
    for (test, is) in [
        ("datum.mark === 'best'", true),
        ("datum.mark === 'cliff'", false),
        ("datum.mark === 'cliff' || datum.mark === 'best'", true),
        ("datum.share > 0.65", true),
        ("datum.share > 0.75", false),
        ("isValid(datum.share)", true),
        ("isValid(datum.low)", false),
    ] {
        assert_eq!(matches_test(test, &row), is, "{test}");
    }
}
