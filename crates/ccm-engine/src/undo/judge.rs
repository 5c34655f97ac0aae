//! Compares the current state of a path with its states before and after a run.

use ccm_host::Image;
use ccm_state::history::PathChange;

/// What is to be done with a path.
pub(super) enum Verdict {
    /// It is as it was before.
    Nothing,
    /// It is as the run left it.
    Restore,
    /// It was changed since the run.
    Conflict(String),
}

pub(super) fn is_directory(image: &Image) -> bool {
    matches!(image, Image::Directory { .. })
}

/// Whether something can be recognized: a content that nobody has read cannot.
pub(super) fn is_known(image: &Image) -> bool {
    !matches!(image, Image::File { digest: None, .. })
}

/// Whether a change was one of owner, group or mode alone.
pub(super) fn is_about_attributes(change: &PathChange) -> bool {
    match (&change.before, &change.after) {
        (Image::File { digest, .. }, Some(Image::File { digest: after, .. })) => digest == after,
        (Image::Directory { .. }, Some(Image::Directory { .. }) | None) => true,
        _ => false,
    }
}

/// Compares what is at a path with what was there before and after the run.
pub(super) fn judge(change: &PathChange, now: &Image) -> Verdict {
    let PathChange { before, after, .. } = change;
    if is_about_attributes(change) {
        let is_kind = std::mem::discriminant(now) == std::mem::discriminant(before);
        let wanted = |image: &Image| is_kind && now.attributes() == image.attributes();
        return match after {
            _ if wanted(before) => Verdict::Nothing,
            None if is_kind => Verdict::Restore,
            Some(after) if wanted(after) && is_given(change) && before.digest().is_none() => {
                let reason = "its owner changed, and it is too large to tell whether its content \
                              is the same";
                Verdict::Conflict(reason.to_owned())
            }
            // What another user could write to is not given back unseen.
            Some(after) if wanted(after) && (!is_given(change) || now.is_like(after)) => {
                Verdict::Restore
            }
            Some(after) => Verdict::Conflict(difference(after, now)),
            None => Verdict::Conflict(difference(before, now)),
        };
    }
    if is_known(before) && now.is_like(before) {
        return Verdict::Nothing;
    }
    match after {
        Some(after) if now.is_like(after) => Verdict::Restore,
        Some(after) => Verdict::Conflict(difference(after, now)),
        // Killed between making a directory and giving it its attributes.
        None if is_directory(now) => Verdict::Restore,
        None => Verdict::Conflict("the run was killed while it changed this".to_owned()),
    }
}

/// How something differs from what the run left.
fn difference(left: &Image, now: &Image) -> String {
    let kind = |image: &Image| match image {
        Image::Absent => "absent",
        Image::File { .. } => "a file",
        Image::Directory { .. } => "a directory",
        Image::Symlink { .. } => "a symlink",
        Image::Other => "a socket, FIFO or device",
    };
    if std::mem::discriminant(left) != std::mem::discriminant(now) {
        let left = if *left == Image::Absent { "nothing" } else { kind(left) };
        return format!("changed since the run: the run left {left}, now it is {}", kind(now));
    }
    let mut differences = Vec::new();
    if let (Image::File { size, digest, .. }, Image::File { size: other, digest: its, .. }) =
        (left, now)
        && (size != other || digest.zip(*its).is_some_and(|(one, other)| one != other))
    {
        differences.push("its content".to_owned());
    }
    if let (Some(left), Some(now)) = (left.attributes(), now.attributes()) {
        if left.uid != now.uid {
            differences.push(format!("its owner ({} instead of {})", now.uid, left.uid));
        }
        if left.gid != now.gid {
            differences.push(format!("its group ({} instead of {})", now.gid, left.gid));
        }
        if left.mode != now.mode {
            differences.push(format!("its mode ({:04o} instead of {:04o})", now.mode, left.mode));
        }
    }
    if let (Image::Symlink { target, .. }, Image::Symlink { target: now, .. }) = (left, now)
        && target != now
    {
        differences.push(format!("its target ({} instead of {})", now.display(), target.display()));
    }
    format!("changed since the run: {}", differences.join(", "))
}

/// Whether the run has given a file to another user or group.
pub(super) fn is_given(change: &PathChange) -> bool {
    let owner = |image: &Image| match image {
        Image::File { attributes, .. } => Some((attributes.uid, attributes.gid)),
        _ => None,
    };
    let after = change.after.as_ref().and_then(owner);
    owner(&change.before).zip(after).is_some_and(|(before, after)| before != after)
}
