use super::*;

/// The table of a run of `seqread`, as far as its decomposition, and from there.
fn halves(run: Run) -> (String, String) {
    let text = render_runs(&[run], ReportFormat::Table, 80);
    let (pivot, decomposition) = text.split_once("\n\nWhere").unwrap();
    (pivot.to_owned(), format!("Where{decomposition}"))
}

#[test]
fn seqread_is_a_pivot() {
    let (pivot, _) = halves(build_seqread89_run("3fa85f6457", "/var/tmp"));
    assert_snapshot!(pivot, @r"
    seqread89 on /var/tmp, run 3fa85f6457
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 2 MiB, median of 3
    repetitions

    seqread: KB/s (CPU)
    per call              null             zero            cached        dropped
    ────────────────────────────────────────────────────────────────────────────
       512 B    5555556 (100%)   4716981 (100%)   2673797 (100%)§  1000000 (35%)
       1 KiB   11111111 (100%)   8928571 (100%)   4651163 (100%)   1234568 (35%)
       2 KiB   22222222 (100%)  16129032 (100%)   7407407 (100%)   1398601 (35%)
       8 KiB   88888889 (100%)  40816327 (100%)  13333333 (100%)   1553398 (35%)
      16 KiB  177777778 (100%)  54794521 (100%)  15384615 (100%)   1582591 (35%)

    per call       direct
    ─────────────────────
       512 B    8302 (8%)
       1 KiB   16543 (8%)
       2 KiB   32841 (8%)
       8 KiB  125786 (8%)
      16 KiB  238095 (8%)
    ");
}

#[test]
fn a_call_of_seqread_is_taken_apart() {
    let (_, decomposition) = halves(build_seqread89_run("3fa85f6457", "/var/tmp"));
    assert_snapshot!(decomposition, @r"
    Where the time of one call goes, in µs:
                              /dev/zero
    per call          bare           clear  total
                      call
    ─────────────────────────────────────────────
       512 B  0.090 ±0.001    0.016 ±0.003  0.106
       1 KiB  0.090 ±0.001    0.022 ±0.003  0.112
       2 KiB  0.090 ±0.001    0.034 ±0.003  0.124
       8 KiB  0.090 ±0.001    0.106 ±0.003  0.196
      16 KiB  0.090 ±0.001    0.202 ±0.006  0.292

              file, not cached
    per call      look-up,            miss        device  total
                      copy        handling          wait
    ───────────────────────────────────────────────────────────
       512 B  0.097 ±0.005  -0.012 ±0.004~  0.325 ±0.009  0.500
       1 KiB  0.125 ±0.006   0.068 ±0.006   0.527 ±0.014  0.810
       2 KiB  0.180 ±0.006   0.230 ±0.010   0.930 ±0.024   1.43
       8 KiB  0.510 ±0.015    1.20 ±0.04     3.35 ±0.08    5.15
      16 KiB  0.950 ±0.026    2.50 ±0.08     6.57 ±0.17    10.1

              file, O_DIRECT
    per call      kernel     device  total
                               wait
    ──────────────────────────────────────
       512 B  4.73 ±0.12  55.4 ±1.4   60.2
       1 KiB  4.75 ±0.12  55.6 ±1.4   60.4
       2 KiB  4.78 ±0.12  56.0 ±1.4   60.9
       8 KiB  5.00 ±0.13  58.5 ±1.5   63.6
      16 KiB  5.29 ±0.13  61.8 ±1.5   67.2

    bare call: a read of /dev/null, with its timing; every total includes it
    clear: filling the buffer with zeros, which reads no memory: a lower bound of
      the copy
    look-up, copy: of pages in the page cache, from the cached file
    miss handling: CPU time beyond that of the cached file
    kernel: CPU time beyond that of the bare call
    device wait: elapsed time without CPU; the device time that read-ahead hides is
      not included
    ~ not significant: within the noise, or negative because the two layers differ
      by more than this part

    KB/s until the last call returned (CPU share of the elapsed time)
    § a call on /dev/null takes up to 51% of such a call: diskperf itself is the
      limit here, not the storage
    ");
}

#[test]
fn copy_is_a_pivot_and_scan_is_not() {
    let mut results = Vec::new();
    for destination in ["null", "same"] {
        for call_bytes in ["8192", "34304", "926208"] {
            let row = results.len() as u32;
            let mut one = undisturbed_result("copy", row, 1000.0 + 100.0 * f64::from(row));
            one.parameters = [
                ("destination".to_owned(), destination.to_owned()),
                ("call_bytes".to_owned(), call_bytes.to_owned()),
            ]
            .into();
            one.distinguishing = vec!["destination".to_owned(), "call_bytes".to_owned()];
            results.push(one);
        }
    }
    for readers in ["1", "4"] {
        let mut one = undisturbed_result("scan", results.len() as u32, 5.25);
        one.parameters
            .insert("readers".to_owned(), readers.to_owned());
        one.distinguishing = vec!["readers".to_owned()];
        results.push(one);
    }
    assert_snapshot!(render_runs(&[build_run("3fa85f6457", "vme87", "/mnt", results)], ReportFormat::Table, 80), @r"
    vme87 on /mnt, run 3fa85f6457
    host, cold page cache, ext4/4096 on vda (QEMU HARDDISK), 1 MiB, median of 4
    repetitions

    copy: KB/s (CPU)
    copy to       8 KiB    33.5 KiB   904.5 KiB
    ───────────────────────────────────────────
    null     1000 (50%)  1100 (50%)  1200 (50%)
    same     1300 (50%)  1400 (50%)  1500 (50%)

    program         KB/s (CPU)   95 %    from
                                       device
    ─────────────────────────────────────────
    scan readers=1   5.3 (50%)  ±1.3%    100%
    scan readers=4   5.3 (50%)  ±1.3%    100%

    KB/s until the last call returned (CPU share of the elapsed time)
    95 %: interval by Student t on logarithms, wide because the repetitions are few
    ");
}

/// What a file system in memory gives: `dropped` is all there before it is read.
fn in_memory(result: &mut ProgramResult) {
    for repetition in &mut result.repetitions {
        repetition.residency = Some(Residency {
            file_bytes: 2 * MIB,
            resident_before_bytes: 2 * MIB,
            resident_after_bytes: 2 * MIB,
        });
        repetition.workers[0].storage_read_bytes = Some(0);
    }
}

#[test]
fn a_layer_that_was_cached_is_not_taken_apart() {
    let layers = ["null", "zero", "cached", "dropped"];
    let results = layers.iter().zip(0..).flat_map(|(layer, row)| {
        let per_call = [(100 + 100 * row, 100), (102 + 100 * row, 100)];
        [512, 8192].map(|call_bytes| build_seqread_result(layer, call_bytes, row as u32, &per_call))
    });
    let mut results: Vec<ProgramResult> = results.collect();
    let mut run = build_run("3fa85f6457", "seqread89", "/dev/shm", Vec::new());
    for (cached, line) in [
        (
            vec![6, 7],
            "file, not cached is not divided: meant to be cold",
        ),
        (
            vec![6],
            "file, not cached by 512 B is not divided: meant to be cold",
        ),
    ] {
        run.results = results.clone();
        cached
            .iter()
            .for_each(|index| in_memory(&mut run.results[*index]));
        let all = cached.len() == 2;
        let (_, decomposition) = halves(run.clone());
        assert!(decomposition.contains(line), "{decomposition}");
        assert_eq!(decomposition.contains("miss"), !all, "{decomposition}");
        assert!(decomposition.contains("file, cached"), "{decomposition}");
    }
    // Nothing else is there to be taken apart.
    results.retain(|one| ["null", "dropped"].contains(&one.parameters["layer"].as_str()));
    results.iter_mut().skip(2).for_each(in_memory);
    run.results = results;
    let text = render_runs(&[run], ReportFormat::Table, 80);
    assert!(text.contains("\nfile, not cached is not divided"), "{text}");
    assert!(!text.contains("Where the time"), "{text}");
}
