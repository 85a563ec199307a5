// Sets of Unicode code points that regular expressions name, and letters that differ in case only.
//
// The tables are computed from the standard library's properties when a pattern first needs them.

/// Sets of Unicode code points.
enum UnicodeSets {
  /// The set of a general category such as `Lu` or `L`, of `Any`, or of a script such as `Greek`.
  static func named(_ name: String) -> UnitSet? {
    if name == "Any" { return UnitSet(CollectionOfOne(0...RE2Pattern.maximumUnit)) }
    return Categories.shared.sets[name] ?? UnicodeScripts.set(named: name)
  }

  /// Computes the tables now, which takes about a tenth of a second. Otherwise the first pattern that needs them
  /// waits for it.
  static func prepare() {
    _ = Categories.shared
    _ = CaseOrbits.shared
    _ = UnicodeScripts.set(named: "")
  }

  /// Adds to a set the code points that differ from a member in case only.
  static func closedUnderCase(_ set: UnitSet) -> UnitSet {
    var ranges = set.ranges
    for range in set.ranges {
      for (lower, upper) in [(UInt32(0x61), UInt32(0x41)), (0x41, 0x61)] {
        guard range.overlaps(lower...lower + 25) else { continue }
        let letters = range.clamped(to: lower...lower + 25)
        ranges.append(letters.lowerBound - lower + upper...letters.upperBound - lower + upper)
      }
    }
    // Only two letters beyond ASCII equal an ASCII letter without regard to case: the Kelvin sign and the long s.
    if set.contains(0x6B) || set.contains(0x4B) { ranges.append(0x212A...0x212A) }
    if set.contains(0x73) || set.contains(0x53) { ranges.append(0x17F...0x17F) }
    let isASCII = (set.ranges.last?.upperBound ?? 0) < 0x80
    let isComplete = set.ranges == [0...RE2Pattern.maximumUnit]
    if !isASCII, !isComplete {
      for members in CaseOrbits.shared.orbits
      where members.contains(where: set.contains) {
        for member in members where !set.contains(member) { ranges.append(member...member) }
      }
    }
    return UnitSet(ranges)
  }
}

/// The code points of each general category.
private struct Categories {
  static let shared = Categories()

  let sets: [String: UnitSet]

  private init() {
    var ranges: [String: [ClosedRange<UInt32>]] = [:]
    var start: UInt32 = 0
    var current = ""
    for value in UInt32(0)...RE2Pattern.maximumUnit + 1 {
      let name =
        value > RE2Pattern.maximumUnit
        ? "" : Unicode.Scalar(value).map { Self.name($0.properties.generalCategory) } ?? "Cs"
      if name != current {
        if value > 0, !current.isEmpty { ranges[current, default: []].append(start...value - 1) }
        (start, current) = (value, name)
      }
    }
    for (name, subcategoryRanges) in ranges where name.utf8.count == 2 {
      ranges[String(name.prefix(1)), default: []] += subcategoryRanges
    }
    sets = ranges.mapValues { UnitSet($0) }
  }

  private static func name(_ category: Unicode.GeneralCategory) -> String {
    switch category {
    case .uppercaseLetter: "Lu"
    case .lowercaseLetter: "Ll"
    case .titlecaseLetter: "Lt"
    case .modifierLetter: "Lm"
    case .otherLetter: "Lo"
    case .nonspacingMark: "Mn"
    case .spacingMark: "Mc"
    case .enclosingMark: "Me"
    case .decimalNumber: "Nd"
    case .letterNumber: "Nl"
    case .otherNumber: "No"
    case .connectorPunctuation: "Pc"
    case .dashPunctuation: "Pd"
    case .openPunctuation: "Ps"
    case .closePunctuation: "Pe"
    case .initialPunctuation: "Pi"
    case .finalPunctuation: "Pf"
    case .otherPunctuation: "Po"
    case .mathSymbol: "Sm"
    case .currencySymbol: "Sc"
    case .modifierSymbol: "Sk"
    case .otherSymbol: "So"
    case .spaceSeparator: "Zs"
    case .lineSeparator: "Zl"
    case .paragraphSeparator: "Zp"
    case .control: "Cc"
    case .format: "Cf"
    case .surrogate: "Cs"
    case .privateUse: "Co"
    case .unassigned: ""
    @unknown default: ""
    }
  }
}

/// The sets of code points that are equal without regard to case.
private struct CaseOrbits {
  static let shared = CaseOrbits()

  /// The sets with at least two members.
  let orbits: [[UInt32]]

  private init() {
    var members: [UInt32: [UInt32]] = [:]
    for value in UInt32(0x41)...0x1E943 {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let properties = scalar.properties
      guard properties.changesWhenUppercased || properties.changesWhenLowercased else { continue }
      let upper = Self.single(properties.uppercaseMapping) ?? scalar
      let lower = Self.single(upper.properties.lowercaseMapping) ?? upper
      members[lower.value, default: []].append(value)
    }
    orbits = members.values.filter { $0.count > 1 }
  }

  private static func single(_ text: String) -> Unicode.Scalar? {
    let scalars = text.unicodeScalars
    return scalars.count == 1 ? scalars.first : nil
  }
}
