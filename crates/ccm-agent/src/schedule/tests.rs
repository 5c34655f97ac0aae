use super::*;

const MINUTE: Duration = Duration::from_mins(1);
const TIMES: Times = Times {
    interval: Duration::from_mins(5),
    health_check_interval: Duration::ZERO,
    splay: Duration::from_secs(30),
};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Random times that are always this part of the longest, in percent.
fn part(percent: u32) -> impl FnMut(Duration) -> Duration + Send {
    move |longest| longest * percent / 100
}

/// A generator that is the same in every run of the test.
fn seeded(seed: u64) -> impl FnMut(Duration) -> Duration + Send {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |longest| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let nanoseconds = u64::try_from(longest.as_nanos()).unwrap();
        Duration::from_nanos(state % (nanoseconds + 1))
    }
}

fn schedule(times: Times, names: &[&str], percent: u32) -> Schedule {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut schedule = Schedule::new(times, &names, true, part(percent));
    for name in names {
        schedule.set_available(&name, true, s(0));
    }
    schedule
}

fn start(schedule: &mut Schedule, now: Moment) -> Option<(String, RunMode, RunReason)> {
    match schedule.next(now) {
        Next::Start(run) => Some((run.manifest, run.mode, run.reason)),
        Next::Wait(_) => None,
    }
}

/// Runs everything that starts until `end`, each run taking this long; when
/// each began.
fn follow(
    schedule: &mut Schedule,
    mut now: Moment,
    end: Moment,
    length: Duration,
) -> Vec<(u64, String, RunMode, RunReason)> {
    let mut began = Vec::new();
    while now < end {
        match schedule.next(now) {
            Next::Start(run) => {
                began.push((now.as_secs(), run.manifest, run.mode, run.reason));
                now += length;
                schedule.finished(Some(false), now);
            }
            Next::Wait(Some(due)) => now = due.max(now),
            Next::Wait(None) => break,
        }
    }
    began
}

fn times_of(began: &[(u64, String, RunMode, RunReason)]) -> Vec<u64> {
    began.iter().map(|(at, ..)| *at).collect()
}

#[test]
fn the_first_applies_are_spread_and_then_regular() {
    let mut schedule = schedule(TIMES, &["m"], 50);
    let began = follow(&mut schedule, s(0), s(1200), s(1));
    // Half of the splay, half of the interval, then the interval.
    assert_eq!(times_of(&began), [15, 165, 465, 765, 1065]);
    assert!(
        began.iter().all(|(_, _, mode, reason)| {
            *mode == RunMode::Apply && *reason == RunReason::Schedule
        })
    );
}

#[test]
fn nothing_runs_without_manifest_or_data() {
    let mut schedule = Schedule::new(TIMES, &["m".to_owned()], false, part(0));
    assert_eq!(schedule.next(s(0)), Next::Wait(None));
    schedule.set_available("m", true, s(1));
    assert_eq!(schedule.next(s(1000)), Next::Wait(None));
    schedule.apply_all();
    assert_eq!(schedule.next(s(1000)), Next::Wait(None));
    schedule.set_data(true, s(2000));
    assert_eq!(
        start(&mut schedule, s(2000)),
        Some(("m".into(), RunMode::Apply, RunReason::Schedule))
    );
}

#[test]
fn ticks_that_fall_into_a_run_are_left_out() {
    let mut schedule = schedule(Times { splay: s(0), ..TIMES }, &["m"], 1);
    assert!(start(&mut schedule, s(0)).is_some());
    schedule.finished(None, s(1));
    // The second, after a hundredth of the interval, takes eleven minutes.
    assert!(start(&mut schedule, s(3)).is_some());
    for now in [303, 304, 603, 650] {
        assert_eq!(start(&mut schedule, s(now)), None);
    }
    schedule.finished(None, s(661));
    assert_eq!(schedule.next(s(661)), Next::Wait(Some(s(903))));
    assert!(start(&mut schedule, s(903)).is_some());
}

#[test]
fn one_run_at_a_time_in_the_order_asked() {
    let mut schedule = schedule(TIMES, &["a", "b", "c"], 0);
    assert_eq!(start(&mut schedule, s(0)).unwrap().0, "a");
    assert_eq!(start(&mut schedule, s(0)), None, "one at a time");
    schedule.finished(None, s(10));
    assert_eq!(start(&mut schedule, s(10)).unwrap().0, "b");
    schedule.finished(None, s(20));
    assert_eq!(start(&mut schedule, s(20)).unwrap().0, "c");
    schedule.finished(None, s(30));
    // The second one of each fell into its first.
    assert_eq!(schedule.next(s(30)), Next::Wait(Some(s(300))));
    assert_eq!(start(&mut schedule, s(311)).unwrap().0, "a");
    schedule.apply_all();
    schedule.finished(None, s(311));
    assert_eq!(start(&mut schedule, s(311)).unwrap().0, "b");
}

#[test]
fn new_content_is_applied_soon_but_not_too_often() {
    let mut schedule = schedule(Times { splay: s(0), ..TIMES }, &["m"], 99);
    let mut began = Vec::new();
    // A new revision every 50 ms for a minute, and applies that take a second.
    let (mut now, mut busy_until) = (Duration::ZERO, None);
    while now < s(70) {
        if now < MINUTE {
            schedule.manifest_changed("m", now);
        }
        if busy_until.is_some_and(|until| until <= now) {
            schedule.finished(None, now);
            busy_until = None;
        }
        if let Some((_, _, reason)) = start(&mut schedule, now) {
            began.push((now, reason));
            busy_until = Some(now + s(1));
        }
        now += Duration::from_millis(50);
    }
    assert!(began.windows(2).all(|pair| pair[1].0.abs_diff(pair[0].0) >= s(5)), "{began:?}");
    assert_eq!(began.len(), 13, "{began:?}");
    let last = began.last().unwrap();
    assert!(last.0 >= s(59), "the last revision is applied too: {last:?}");
    assert!(began[1..].iter().all(|(_, reason)| *reason == RunReason::Source));
}

#[test]
fn new_content_does_not_move_the_sequence() {
    let mut schedule = schedule(TIMES, &["m"], 50);
    let mut began = follow(&mut schedule, s(0), s(200), s(1));
    schedule.manifest_changed("m", s(200));
    schedule.data_changed(s(201));
    began.extend(follow(&mut schedule, s(201), s(800), s(1)));
    assert_eq!(times_of(&began), [15, 165, 201, 465, 765]);
    assert_eq!(began[2].3, RunReason::Source, "the first reason counts");
}

#[test]
fn a_change_during_a_run_is_applied_after_it() {
    let mut schedule = schedule(Times { splay: s(0), ..TIMES }, &["m"], 99);
    assert!(start(&mut schedule, s(0)).is_some());
    schedule.data_changed(s(2));
    assert_eq!(start(&mut schedule, s(100)), None);
    schedule.finished(None, s(100));
    assert_eq!(start(&mut schedule, s(100)), Some(("m".into(), RunMode::Apply, RunReason::Data)));
}

#[test]
fn health_checks_come_after_the_first_apply() {
    let times = Times { health_check_interval: s(60), splay: s(30), ..TIMES };
    let mut schedule = schedule(times, &["a", "b"], 100);
    let began = follow(&mut schedule, s(0), s(200), s(1));
    let shown: Vec<String> =
        began.iter().map(|(at, name, mode, _)| format!("{at} {name} {}", mode.name())).collect();
    assert_eq!(
        shown,
        [
            "30 a apply",
            "31 b apply",
            "60 a health",
            "61 b health",
            "120 a health",
            "121 b health",
            "180 a health",
            "181 b health",
        ]
    );
}

#[test]
fn an_apply_takes_the_place_of_a_waiting_health_check() {
    let times = Times { health_check_interval: s(60), splay: s(0), ..TIMES };
    let mut schedule = schedule(times, &["a", "b", "c"], 99);
    for now in [0, 1, 2] {
        assert!(start(&mut schedule, s(now)).is_some());
        schedule.finished(None, s(now + 1));
    }
    assert_eq!(start(&mut schedule, s(60)).unwrap().1, RunMode::Health);
    // While the checks of `a` run, `b` and `c` wait. `b` gets something new.
    schedule.manifest_changed("b", s(61));
    schedule.apply_all();
    schedule.apply_all();
    schedule.finished(Some(false), s(70));
    let mut order = Vec::new();
    while let Some((name, mode, _)) = start(&mut schedule, s(70)) {
        order.push(format!("{name} {}", mode.name()));
        schedule.finished(Some(false), s(70));
    }
    assert_eq!(order, ["b apply", "c apply", "a apply"], "one each, in the place of its check");
}

#[test]
fn remediation_backs_off_until_the_checks_are_well() {
    let times = Times { interval: s(600), health_check_interval: s(5), splay: s(0) };
    let mut schedule = schedule(times, &["m"], 100);
    let mut now = s(0);
    let mut began = Vec::new();
    while now < s(2400) {
        match schedule.next(now) {
            Next::Start(run) => {
                if run.mode == RunMode::Apply {
                    began.push((now.as_secs(), run.reason));
                }
                now += Duration::from_millis(100);
                let is_well = run.mode == RunMode::Health && now > s(1700);
                schedule.finished(Some(!is_well), now);
            }
            Next::Wait(due) => now = due.unwrap(),
        }
    }
    let remediations: Vec<u64> =
        began.iter().filter(|(_, why)| *why == RunReason::Remediation).map(|(at, _)| *at).collect();
    // 30 s after the first apply, then after one, two, four, eight minutes.
    assert_eq!(remediations, [30, 90, 210, 450, 1080], "{began:?}");
    // From the last apply, whatever its reason; never more than the interval.
    let applies: Vec<u64> = began.iter().map(|(at, _)| *at).collect();
    assert_eq!(applies, [0, 30, 90, 210, 450, 600, 1080, 1200, 1800], "{began:?}");
}

#[test]
fn a_health_check_without_critical_ends_the_sequence() {
    let times = Times { interval: s(3600), health_check_interval: s(10), splay: s(0) };
    let mut schedule = schedule(times, &["m"], 100);
    let run = |schedule: &mut Schedule, now: u64, is_critical| {
        let started = start(schedule, s(now));
        schedule.finished(Some(is_critical), s(now));
        started.map(|(_, mode, _)| mode)
    };
    assert_eq!(run(&mut schedule, 0, false), Some(RunMode::Apply));
    assert_eq!(run(&mut schedule, 10, true), Some(RunMode::Health));
    assert_eq!(run(&mut schedule, 20, false), Some(RunMode::Health));
    assert_eq!(run(&mut schedule, 30, true), Some(RunMode::Health), "no remediation is due");
    assert_eq!(run(&mut schedule, 30, false), Some(RunMode::Apply), "again after 30 s");
    assert_eq!(run(&mut schedule, 40, true), Some(RunMode::Health));
    for now in [50, 60, 70, 80] {
        assert_eq!(run(&mut schedule, now, true), Some(RunMode::Health));
    }
    assert_eq!(run(&mut schedule, 90, true), Some(RunMode::Apply), "a minute after the last");
}

#[test]
fn signals_apply_at_once_and_keep_the_sequence() {
    let mut schedule = schedule(TIMES, &["a", "b"], 50);
    let mut began = follow(&mut schedule, s(0), s(180), s(1));
    schedule.apply_all();
    began.extend(follow(&mut schedule, s(180), s(500), s(1)));
    assert_eq!(times_of(&began), [15, 16, 165, 166, 180, 181, 465, 466]);
    assert_eq!(began[4].3, RunReason::Signal);
}

#[test]
fn a_manifest_that_is_gone_suspends_its_worker() {
    let times = Times { health_check_interval: s(10), ..TIMES };
    let mut schedule = schedule(times, &["m"], 0);
    assert!(start(&mut schedule, s(0)).is_some());
    schedule.apply_all();
    schedule.set_available("m", false, s(5));
    schedule.finished(None, s(6));
    for now in [6, 10, 300, 1000] {
        assert_eq!(start(&mut schedule, s(now)), None);
    }
    schedule.set_available("m", true, s(2000));
    assert_eq!(start(&mut schedule, s(2000)).unwrap().2, RunReason::Source);
    schedule.finished(None, s(2001));
    let ahead = follow(&mut schedule, s(2001), s(2400), s(0));
    assert!(ahead.iter().any(|(at, _, mode, _)| *at == 2300 && *mode == RunMode::Apply));
}

#[test]
fn a_machine_that_slept_runs_once_after_waking() {
    let times = Times { health_check_interval: s(60), splay: s(0), ..TIMES };
    let mut schedule = schedule(times, &["m"], 1);
    for now in [0, 3] {
        assert!(start(&mut schedule, s(now)).is_some());
        schedule.finished(Some(false), s(now));
    }
    let woke = 9 * 3600;
    let mut ran = Vec::new();
    while let Some((_, mode, _)) = start(&mut schedule, s(woke)) {
        ran.push(mode);
        schedule.finished(Some(false), s(woke));
    }
    assert_eq!(ran, [RunMode::Apply]);
    let Next::Wait(Some(next)) = schedule.next(s(woke)) else { panic!() };
    assert!(next > s(woke) && next <= s(woke + 60));
}

#[test]
fn a_new_configuration_keeps_the_times_of_workers_that_stay() {
    let mut schedule = schedule(TIMES, &["a", "b"], 50);
    let before = follow(&mut schedule, s(0), s(200), s(1));
    assert_eq!(times_of(&before), [15, 16, 165, 166]);
    schedule.reconfigure(TIMES, &["c".to_owned(), "a".to_owned()], s(200));
    schedule.set_available("c", true, s(200));
    let after = follow(&mut schedule, s(200), s(480), s(1));
    let shown: Vec<(u64, &str)> = after.iter().map(|run| (run.0, run.1.as_str())).collect();
    assert_eq!(shown, [(215, "c"), (365, "c"), (465, "a")]);
    // A shorter interval counts from now on.
    schedule.reconfigure(Times { interval: s(60), ..TIMES }, &["a".to_owned()], s(480));
    assert_eq!(schedule.next(s(480)), Next::Wait(Some(s(540))));
}

#[test]
fn a_worker_that_leaves_ends_after_its_run() {
    let mut schedule = schedule(TIMES, &["a", "b"], 0);
    assert_eq!(start(&mut schedule, s(0)).unwrap().0, "a");
    schedule.reconfigure(TIMES, &["b".to_owned()], s(1));
    assert_eq!(schedule.running().unwrap().manifest, "a");
    assert_eq!(start(&mut schedule, s(2)), None);
    schedule.finished(Some(true), s(3));
    assert_eq!(start(&mut schedule, s(3)).unwrap().0, "b");
    schedule.finished(None, s(3));
    schedule.stop();
    schedule.apply_all();
    assert_eq!(schedule.next(s(10_000)), Next::Wait(None));
}

/// A whole day of three workers whose content changes and whose checks fail at
/// random, with runs of random length.
#[test]
fn a_day_keeps_all_promises() {
    for seed in 1..=20 {
        let times = Times { interval: s(300), health_check_interval: s(20), splay: s(30) };
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut schedule = Schedule::new(times, &names, true, seeded(seed));
        let mut chance = seeded(seed + 1000);
        for name in &names {
            schedule.set_available(name, true, s(0));
        }
        let day = s(24 * 3600);
        let (mut now, mut ends) = (Duration::ZERO, None);
        let mut next_change = chance(s(1200));
        let mut changed_at: [Option<Moment>; 3] = [None; 3];
        let mut applies: [Vec<(Moment, RunReason)>; 3] = Default::default();
        let (mut checks, mut busy) = ([0; 3], Duration::ZERO);
        let mut longest_wait = Duration::ZERO;
        while now < day {
            if ends.is_some_and(|end| end <= now) {
                ends = None;
                schedule.finished(Some(chance(s(100)) < s(5)), now);
            }
            if next_change <= now {
                next_change = now + chance(s(1200));
                let at = usize::try_from(chance(s(2)).as_secs()).unwrap();
                schedule.manifest_changed(&names[at], now);
                changed_at[at].get_or_insert(now);
            }
            match schedule.next(now) {
                Next::Start(run) => {
                    assert!(ends.is_none(), "one run at a time");
                    let at = names.iter().position(|name| *name == run.manifest).unwrap();
                    let length = match run.mode {
                        RunMode::Apply => s(1) + chance(s(15)),
                        RunMode::Health => chance(s(2)),
                    };
                    busy += length;
                    ends = Some(now + length);
                    if run.mode == RunMode::Apply {
                        applies[at].push((now, run.reason));
                        if let Some(changed) = changed_at[at].take() {
                            longest_wait = longest_wait.max(now.abs_diff(changed));
                        }
                    } else {
                        checks[at] += 1;
                    }
                }
                Next::Wait(due) => {
                    let next = [due, ends, Some(next_change)].into_iter().flatten().min();
                    now = next.unwrap().max(now + Duration::from_millis(1));
                }
            }
        }
        for (applies, checks) in applies.iter().zip(checks) {
            let regular: Vec<Moment> = applies
                .iter()
                .filter(|(_, why)| *why == RunReason::Schedule)
                .map(|(at, _)| *at)
                .collect();
            // One per interval; a few fall into a run of their own worker.
            assert!((260..=289).contains(&regular.len()), "{seed}: {}", regular.len());
            let gap = |pair: &[Moment]| pair[1].abs_diff(pair[0]);
            let gaps: Vec<Duration> = regular[1..].windows(2).map(gap).collect();
            assert!(gaps.iter().all(|gap| *gap >= times.interval), "{seed}: {gaps:?}");
            let too_soon = applies.windows(2).filter(|pair| {
                matches!(pair[1].1, RunReason::Source | RunReason::Data)
                    && pair[1].0.abs_diff(pair[0].0) < AFTER_APPLY
            });
            assert_eq!(too_soon.count(), 0, "{seed}");
            let remediated = applies.windows(2).filter(|pair| pair[1].1 == RunReason::Remediation);
            for pair in remediated {
                assert!(pair[1].0.abs_diff(pair[0].0) >= REMEDIATION, "{seed}: {pair:?}");
            }
            assert!(checks > 2000, "{seed}: {checks}");
        }
        // The splay, the wait after an apply, and what others do meanwhile.
        assert!(longest_wait <= s(30 + 5 + 3 * 18), "{seed}: {longest_wait:?}");
        assert!(busy < day);
    }
}

/// A thousand machines that start at the same time, and get something new at
/// the same time.
#[test]
fn a_fleet_is_spread_over_the_interval() {
    let mut per_half_minute = [0_u32; 10];
    let mut first = [0_u32; 3];
    for seed in 1..=1000 {
        let mut schedule = Schedule::new(TIMES, &["m".to_owned()], true, seeded(seed));
        schedule.set_available("m", true, s(0));
        let mut began = follow(&mut schedule, s(0), s(700), s(1));
        schedule.manifest_changed("m", s(700));
        began.extend(follow(&mut schedule, s(700), s(2400), s(1)));
        first[usize::try_from(began[0].0 / 10).unwrap().min(2)] += 1;
        let late =
            began.iter().filter(|(at, _, _, why)| *at >= 1500 && *why == RunReason::Schedule);
        let at = late.map(|(at, ..)| *at).next().unwrap();
        per_half_minute[usize::try_from(at % 300 / 30).unwrap()] += 1;
    }
    assert!(first.iter().all(|&count| (230..=440).contains(&count)), "{first:?}");
    assert!(
        per_half_minute.iter().all(|&count| (50..=160).contains(&count)),
        "{per_half_minute:?}"
    );
}
