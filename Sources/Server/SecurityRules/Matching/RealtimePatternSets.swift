// The sets of UTF-16 code units that regular expressions of Realtime Database rules name, as JavaScript defines them.

/// Sets of UTF-16 code units.
enum RealtimePatternSets {
  /// The largest UTF-16 code unit.
  static let maximumUnit: UInt32 = 0xFFFF

  /// `.`: every unit but the line terminators.
  static let dot = UnitSet([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029]).inverted(upTo: maximumUnit)

  private static let digit = UnitSet([0x30...0x39])
  private static let word = UnitSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
  /// White space and line terminators.
  private static let space = UnitSet([
    0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029, 0x202F...0x202F,
    0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
  ])

  /// The set that a backslash and a letter name; nil if the letter stands for itself.
  static func escape(_ unit: UInt16) -> UnitSet? {
    switch Unicode.Scalar(unit) ?? "\u{FFFD}" {
    case "d": digit
    case "D": digit.inverted(upTo: maximumUnit)
    case "w": word
    case "W": word.inverted(upTo: maximumUnit)
    case "s": space
    case "S": space.inverted(upTo: maximumUnit)
    default: nil
    }
  }

  /// Adds to a set the units that differ from a member in case only.
  ///
  /// Two units are equal without regard to case if their upper-case forms are one and the same unit. As in JavaScript
  /// without the flag `u`, no unit beyond ASCII equals an ASCII unit.
  static func closedUnderCase(_ set: UnitSet) -> UnitSet {
    var ranges = set.ranges
    for range in set.ranges {
      for (lower, upper) in [(UInt32(0x61), UInt32(0x41)), (0x41, 0x61)] {
        guard range.overlaps(lower...lower + 25) else { continue }
        let letters = range.clamped(to: lower...lower + 25)
        ranges.append(letters.lowerBound - lower + upper...letters.upperBound - lower + upper)
      }
      guard range.upperBound >= 0x80, range != 0...maximumUnit else { continue }
      for members in CaseClasses.shared.classes where members.contains(where: range.contains) {
        ranges += members.map { $0...$0 }
      }
    }
    return UnitSet(ranges)
  }
}

/// The classes of units beyond ASCII that are equal without regard to case.
private struct CaseClasses {
  /// Computed when an expression first needs it.
  static let shared = CaseClasses()

  /// The classes that contain at least two units.
  let classes: [[UInt32]]

  private init() {
    var members: [UInt32: [UInt32]] = [:]
    for unit in UInt32(0x80)...RealtimePatternSets.maximumUnit {
      guard let scalar = Unicode.Scalar(unit) else { continue }
      let properties = scalar.properties
      guard properties.changesWhenUppercased || properties.changesWhenLowercased else { continue }
      let upper = Array(properties.uppercaseMapping.utf16)
      let canonical = upper.count == 1 && upper[0] >= 0x80 ? UInt32(upper[0]) : unit
      members[canonical, default: []].append(unit)
    }
    classes = members.values.filter { $0.count > 1 }
  }
}
