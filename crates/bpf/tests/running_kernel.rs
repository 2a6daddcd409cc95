//! Types of the running kernel.

use diskperf_bpf::Btf;

/// The sector of a request has been at this offset from Linux 5.10 to 7.2.
#[test]
fn the_running_kernel_describes_its_requests() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
        eprintln!(
            "SKIPPED the_running_kernel_describes_its_requests: this kernel does not describe its types"
        );
        return;
    };
    let btf = Btf::parse(bytes).unwrap();
    let sector = btf.find_member("request", "__sector").unwrap();
    assert_eq!((sector.offset_bytes, sector.size_bytes), (48, 8));
    let switch = btf.find_tracepoint("sched_switch").unwrap();
    let previous = switch.find_argument(&btf, "struct task_struct *");
    let next = switch.find_repeated_argument(&btf, "struct task_struct *", 1);
    assert_eq!((previous, next), (Ok(1), Ok(2)));
}
