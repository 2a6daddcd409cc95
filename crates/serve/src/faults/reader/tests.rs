use super::*;

const SECTORS: u64 = 1000;

fn read(text: &str) -> Result<Vec<FaultSpecification>, Errors> {
    let text = Arc::new(Text::new("faults.toml".to_owned(), text.to_owned()));
    let mut faults = Vec::new();
    read_file(&text, 7, SECTORS, &mut faults)?;
    Ok(faults)
}

#[test]
fn a_file_has_faults_with_defaults() {
    let faults = read(
        "[[fault]]\nkind = 'unreadable_sectors'\nfirst_sector = 100\nsectors = 8\n\
         [[fault]]\nname = 'old'\nkind = 'slow_drive'\nfactor = 3\nseed = 9\non = false\n\
         operations = ['read', 'write_zeroes']\nstart_request = 5\nrequests = 2\n\
         [[fault]]\nkind = 'hang'\nhang_s = 40\ninterval_s = 600\nstart_s = 1.5\nduration_s = 3000\n",
    );
    let faults = faults.unwrap();
    let [bad, old, hang] = faults.as_slice() else {
        panic!("{faults:?}");
    };
    assert_eq!(bad.name, "unreadable_sectors");
    assert_eq!(
        (bad.sectors.clone(), bad.seed, bad.is_on),
        (100..108, 7, true)
    );
    let reassignment = Time::from_millis(20);
    assert_eq!(
        bad.kind,
        FaultKind::UnreadableSectors {
            runs: None,
            retry: Time::ZERO,
            reassignment
        }
    );
    assert_eq!((old.name.as_str(), old.seed, old.is_on), ("old", 9, false));
    assert_eq!(old.sectors, 0..SECTORS);
    let operations = [OperationKind::Read, OperationKind::WriteZeroes];
    assert_eq!(old.operations, operations);
    assert_eq!(
        (old.start, old.length),
        (FaultStart::Request(5), FaultLength::Requests(2))
    );
    assert_eq!(hang.start, FaultStart::Time(Time::from_millis(1500)));
    assert_eq!(hang.length, FaultLength::Time(Time::from_millis(3_000_000)));
    assert!(matches!(
        hang.kind,
        FaultKind::Hang {
            interval: Some(_),
            ..
        }
    ));
}

#[test]
fn every_kind_has_a_name_and_a_reader() {
    for (name, _) in KINDS {
        let needed = match name {
            "slow_sectors" => "delay_ms = 5",
            "slow_drive" => "factor = 2",
            "hang" => "hang_s = 1",
            "error" => "per_thousand = 5",
            _ => "",
        };
        let faults = read(&format!("[[fault]]\nkind = '{name}'\n{needed}\n"));
        let faults = faults.unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert_eq!(faults[0].kind.name(), name);
    }
}

#[test]
fn mistakes_are_shown_at_their_place_with_a_remedy() {
    for (text, parts) in [
        ("", &["faults.toml:1:1", "lacks `fault`", "[[fault]]"][..]),
        ("[[fault]\n", &["faults.toml:1:", "not a valid TOML file"]),
        (
            "[[faults]]\nkind = 'hang'\n",
            &["unknown key `faults`", "did you mean `fault`?"],
        ),
        ("fault = 3\n", &["faults.toml:1:9", "`[[fault]]`"]),
        (
            "[[fault]]\nname = 'a'\n",
            &["a fault lacks `kind`", "lost_write"],
        ),
        (
            "[[fault]]\nkind = 'lost_writes'\n",
            &["faults.toml:2:8", "did you mean `lost_write`?"],
        ),
        (
            "[[fault]]\nkind = 'slow_drive'\nfacter = 3\n",
            &[
                "faults.toml:3:1",
                "unknown key `facter`",
                "did you mean `factor`?",
            ],
        ),
        (
            "[[fault]]\nkind = 'slow_drive'\nfactor = 0.5\n",
            &[
                "faults.toml:3:10",
                "`factor` is out of range",
                "from 1 to 1000",
            ],
        ),
        (
            "[[fault]]\nkind = 'slow_sectors'\n",
            &["lacks `delay_ms`", "delay_ms = 50"],
        ),
        (
            "[[fault]]\nkind = 'slow_sectors'\ndelay_ms = '5 ms'\n",
            &["faults.toml:3:12", "write the number alone"],
        ),
        (
            "[[fault]]\nkind = 'death'\nfactor = 3\n",
            &["faults.toml:3:1", "unknown key `factor`"],
        ),
        (
            "[[fault]]\nkind = 'death'\nfirst_sector = 1000\n",
            &["faults.toml:3:16", "from 0 to 999"],
        ),
        (
            "[[fault]]\nkind = 'bit_rot'\nfirst_sector = 900\nsectors = 101\n",
            &["faults.toml:4:11", "from 1 to 100"],
        ),
        (
            "[[fault]]\nkind = 'error'\nper_thousand = 1001\n",
            &["from 0 to 1000"],
        ),
        (
            "[[fault]]\nkind = 'error'\nper_thousand = 1\noperations = ['raed']\n",
            &["faults.toml:4:15", "did you mean `read`?"],
        ),
        (
            "[[fault]]\nkind = 'hang'\nhang_s = 5\ninterval_s = 5\n",
            &["faults.toml:4:14", "above 5 s"],
        ),
        (
            "[[fault]]\nkind = 'death'\nstart_s = 1\nstart_request = 1\n",
            &["faults.toml:4:17", "remove this, or `start_s`"],
        ),
        (
            "[[fault]]\nkind = 'death'\nduration_s = 1\nrequests = 1\n",
            &["faults.toml:4:12", "remove this, or `duration_s`"],
        ),
        (
            "[[fault]]\nkind = 'slow_sectors'\ndelay_ms = 1\nrun_sectors = 8\n",
            &["faults.toml:4:15", "`runs = 3`"],
        ),
        (
            "[[fault]]\nkind = 'death'\n[[fault]]\nkind = 'death'\n",
            &["two faults have the name `death`"],
        ),
        (
            "[[fault]]\nkind = 'death'\nname = 'a b'\n",
            &["faults.toml:3:8", "A-Z"],
        ),
    ] {
        let errors = read(text).expect_err(text);
        let shown = errors.to_string();
        for part in parts {
            assert!(shown.contains(part), "{text}: {part} is not in {shown}");
        }
        assert_eq!(errors.problems().len(), 1, "{text}: {shown}");
    }
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("faults.toml");
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    for (path, part) in [
        (path, "UTF-8"),
        (folder.path().to_owned(), "is a directory"),
        (folder.path().join("absent"), "No such file"),
    ] {
        let error = read_faults(&[path], 1, SECTORS).unwrap_err().to_string();
        assert!(
            error.contains("--fault ") && error.contains(part),
            "{error}"
        );
    }
}
