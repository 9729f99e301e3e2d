"""The methods of a panel test as a paragraph for a paper, with its numbers filled in."""

from __future__ import annotations

from dia_demo.services.listening.panel.designs import SPECS, Design
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import GoalKind, LookKind, PanelPlan
from dia_demo.services.wording import plural

_DESIGNS = {
    Design.PREFERENCE: "a preference test: two clips per screen, of which one was chosen, or "
    "neither",
    Design.ABX: "an ABX test: whether X was the first or the second clip",
    Design.CMOS: "a comparison category rating (CMOS, ITU-T P.800, -3 to +3)",
    Design.MUSHRA: "a multiple-stimulus test (MUSHRA, after ITU-R BS.1534, 0 to 100)",
    Design.BWS: "best-worst scaling: the best and the worst clip of each screen",
    Design.MOS: "an absolute category rating (MOS, ITU-T P.800, 1 to 5)",
}


def methods_of(panel: Panel) -> str:
    """How a test was made and taken, as sentences. Nothing in it depends on a vote."""
    plan = panel.plan
    return " ".join(
        [_listeners(panel), _material(plan), _session(plan), _rules(plan), goal_of(plan)]
    )


def _listeners(panel: Panel) -> str:
    progress = panel.progress()
    done = sum(one.complete for one in progress)
    offline = sum(one.rater.offline for one in progress)
    left_out = [one.rater.excluded for one in progress if one.rater.excluded]
    text = (
        f"{plural(len(progress), 'listener')} began and {done} completed "
        f"{_DESIGNS[panel.plan.design]}; {panel.plan.raters} were planned."
    )
    if offline:
        text += f" {offline} took it offline."
    if left_out:
        reasons = "; ".join(dict.fromkeys(left_out))
        text += f" {len(left_out)} were left out by hand before the reveal ({reasons})."
    return text


def _material(plan: PanelPlan) -> str:
    scripts = len({item.script for item in plan.items})
    takes = f" in {plural(len(plan.items), 'take')}" if scripts < len(plan.items) else ""
    text = (
        f"The material was {plural(scripts, 'script')}{takes} "
        f"of {len(plan.systems)} systems ({', '.join(plan.systems)}), brought to equal integrated "
        "loudness (ITU-R BS.1770, louder clips turned down)."
    )
    if plan.reference is not None:
        text += (
            f" {plan.systems[plan.reference]} was the open and hidden reference, with a low-pass "
            "anchor at 3.5 kHz."
        )
    return text


def _session(plan: PanelPlan) -> str:
    session = plan.session
    text = (
        f"Each listener judged {plural(plan.trials, 'screen')} in an own random order, the sides "
        f"balanced for each listener, after {plural(session.training, 'training screen')}"
    )
    hidden = [
        f"{session.catch_share:.0%} catch trials" if session.catch_share else "",
        plural(session.repeats, "hidden repeat") if session.repeats else "",
        plural(session.null_pairs, "null pair")
        if session.null_pairs and SPECS[plan.design].pairs
        else "",
    ]
    named = [words for words in hidden if words]
    text += f", with {', '.join(named)}." if named else "."
    if session.headphone_check:
        text += " Headphones were checked with tones in antiphase."
    return text


def _rules(plan: PanelPlan) -> str:
    rules = plan.rules
    named = [f"more than {rules.catch:.0%} of the catch trials failed"]
    if rules.repeats:
        named.append(f"fewer than {rules.repeats:.0%} of the repeats consistent")
    if rules.headphones:
        named.append("headphone check not passed")
    if rules.complete:
        named.append("session not completed")
    if plan.reference is not None:
        named.append(
            f"hidden reference rated below 90 on more than {rules.reference:.0%} of screens"
        )
    return f"Fixed beforehand, listeners were left out for: {'; '.join(named)}."


def goal_of(plan: PanelPlan) -> str:
    """What the test was to show, and when the result could be seen, in sentences."""
    goal, unit = plan.goal, SPECS[plan.design].unit
    first, second = plan.systems[goal.first], plan.systems[goal.second]
    match goal.kind:
        case GoalKind.SUPERIORITY:
            aim = f"that {first} and {second} differ"
        case GoalKind.NONINFERIORITY:
            aim = f"that {first} is not worse than {second} by {goal.margin:g} {unit} or more"
        case GoalKind.EQUIVALENCE:
            aim = f"that {first} and {second} differ by less than {goal.margin:g} {unit}"
    looks = {
        LookKind.NONE: "was evaluated once, at the planned number of listeners",
        LookKind.OBRIEN_FLEMING: f"had {plan.looks.number} planned looks with O'Brien-Fleming "
        "levels",
        LookKind.E_VALUE: "could be looked at after every listener, as an e-value",
    }
    return f"The test was to show {aim}; it {looks[plan.looks.kind]}."
