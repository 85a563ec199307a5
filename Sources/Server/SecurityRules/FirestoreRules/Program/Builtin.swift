/// A function that the rules language provides, with its package: `math.abs`.
package enum Builtin: String, Sendable, CaseIterable {
  case debug, path, string, int, float
  case get, exists, getAfter, existsAfter
  case mathAbs = "math.abs"
  case mathCeil = "math.ceil"
  case mathFloor = "math.floor"
  case mathRound = "math.round"
  case mathSqrt = "math.sqrt"
  case mathPow = "math.pow"
  case mathIsNaN = "math.isNaN"
  case mathIsInfinite = "math.isInfinite"
  case hashingMD5 = "hashing.md5"
  case hashingSHA256 = "hashing.sha256"
  case hashingCRC32 = "hashing.crc32"
  case hashingCRC32C = "hashing.crc32c"
  case timestampDate = "timestamp.date"
  case timestampValue = "timestamp.value"
  case durationValue = "duration.value"
  case durationTime = "duration.time"
  case durationAbs = "duration.abs"
  case latlngValue = "latlng.value"

  /// The packages, whose names are no variables.
  static let packages: Set<String> = ["math", "hashing", "timestamp", "duration", "latlng"]

  /// The number of arguments; nil if one or more.
  var argumentCount: Int? {
    switch self {
    case .debug: nil
    case .durationTime: 4
    case .timestampDate: 3
    case .mathPow, .durationValue, .latlngValue: 2
    default: 1
    }
  }

  /// Whether the function reads a stored document.
  var isLookup: Bool {
    switch self {
    case .get, .exists, .getAfter, .existsAfter: true
    default: false
    }
  }
}

/// A method of a type of the rules language.
package enum Method: String, Sendable, CaseIterable {
  case size
  case lower, upper, trim, matches, replace, split, toUtf8
  case toBase64, toHexString
  case hasAll, hasAny, hasOnly, concat, join, removeAll, toSet
  case union, intersection, difference
  case keys, values, get, diff
  case addedKeys, removedKeys, changedKeys, unchangedKeys, affectedKeys
  case bind
  case year, month, day, hours, minutes, seconds, nanos, dayOfWeek, dayOfYear, date, time, toMillis
  case latitude, longitude, distance

  /// The number of arguments.
  var argumentCount: Int {
    switch self {
    case .replace, .get: 2
    case .matches, .split, .hasAll, .hasAny, .hasOnly, .concat, .join, .removeAll, .union, .intersection,
      .difference, .diff, .bind, .distance:
      1
    default: 0
    }
  }
}
