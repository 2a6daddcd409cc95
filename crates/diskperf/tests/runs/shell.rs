//! Completion in a shell, and manual pages.

use crate::support::User;
use std::fs;
use std::process::Command;

/// What bash offers where the cursor is behind the last of these words.
fn completed(user: &User, words: &[&str]) -> Vec<String> {
    let script = r#"
        source ./completions.bash
        [[ $(complete -p diskperf) =~ \ -F\ ([^ ]+) ]]
        COMP_WORDS=(diskperf "$@") COMP_CWORD=$#
        "${BASH_REMATCH[1]}" diskperf "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .args(words)
        .current_dir(user.home())
        .output()
        .expect("bash starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("completions are text");
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let user = User::new();
    let script = user.run(&["completions", "bash"]).expect(0, &[]).stdout;
    fs::write(user.file("completions.bash"), script).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["rep"], &["replay", "report", "reproduce"]),
        (&["calculate", "int"], &["interleave"]),
        (&["run", "--cat"], &["--catalogue"]),
        (&["run", "--format", "j"], &["json"]),
        (&["run", "vme"], &["vme87"]),
        (&["run", "--suite", "write_8"], &["write_8192"]),
        (&["run", "--on", "pcat-st"], &["pcat-st251"]),
        (&["explain", "atarist-s"], &["atarist-supra"]),
        (&["list", "sys"], &["systems"]),
        (&["reproduce", "speck"], &["speck-bass-1984"]),
        (&["completions", "f"], &["fish"]),
        // No name matches, so bash offers the files.
        (&["run", "--on", "./tar"], &[]),
    ];
    for (words, offered) in cases {
        let mut found = completed(&user, words);
        found.sort();
        assert_eq!(found, *offered, "{words:?}");
    }
}

#[test]
fn every_shell_has_a_script() {
    let user = User::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = user.run(&["completions", shell]).expect(0, &[]).stdout;
        for word in ["diskperf", "reproduce", "catalogue", "O_DIRECT"] {
            let is_described = shell != "bash" || word != "O_DIRECT";
            assert!(script.contains(word) == is_described, "{shell}: {word}");
        }
    }
    user.run(&["completions", "csh"])
        .expect(2, &["'csh'", "bash", "zsh"]);
}

#[test]
fn a_manual_page_for_every_command() {
    let user = User::new();
    for (words, title, says) in [
        (&[][..], "diskperf", "diskperf-calculate(1)"),
        (&["run"], "diskperf-run", "--destroy-data-on"),
        (
            &["calculate", "format"],
            "diskperf-calculate-format",
            "--passes",
        ),
    ] {
        let page = user.run(&[&["man"], words].concat()).expect(0, &[]).stdout;
        assert!(page.contains(&format!(".TH {title} 1 ")), "{page}");
        fs::write(user.file("page.1"), &page).unwrap();
        // What `man` formats pages with; not every machine has it.
        let formatted = Command::new("groff")
            .args(["-man", "-Tascii", "-ww", "-P-cbu", "page.1"])
            .current_dir(user.home())
            .output();
        let text = match formatted {
            Ok(output) => {
                let warnings = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && warnings.is_empty(), "{warnings}");
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
            Err(_) => {
                println!("SKIPPED a_manual_page_for_every_command: groff is not installed");
                page.replace('\\', "")
            }
        };
        for part in ["NAME", "SYNOPSIS", "OPTIONS", says] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
    user.run(&["man", "comprae"])
        .expect(2, &["no command `comprae`", "`compare`"]);
}
