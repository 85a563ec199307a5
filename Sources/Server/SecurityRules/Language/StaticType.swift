/// The types that an expression may have, as far as its text determines them; nil where any type is possible.
typealias StaticTypes = [StaticType]?

/// A type as the checker's warnings name it.
enum StaticType: String, Sendable {
  case null, bool, int, float, string, bytes, timestamp, duration, latlng, path, list, map, set, constraint
  case mapDiff = "map_diff"
}

/// The types of a function's arguments and result. They serve warnings only; evaluation checks types itself.
struct Signature: Sendable {
  /// The types that have the method; nil for a function.
  var receivers: StaticTypes = nil
  /// The types of each argument.
  var arguments: [StaticTypes] = []
  /// The types of the result.
  var result: StaticTypes = nil

  static func of(_ builtin: Builtin) -> Signature {
    switch builtin {
    case .debug: Signature(arguments: [nil])
    case .path: Signature(arguments: [[.string]], result: [.path])
    case .string: Signature(arguments: [[.int, .float, .null, .string, .bool, .path]], result: [.string])
    case .int: Signature(arguments: [[.int, .float, .string]], result: [.int])
    case .float: Signature(arguments: [[.int, .float, .string]], result: [.float])
    case .get, .exists, .getAfter, .existsAfter: Signature(arguments: [[.path]])
    case .mathAbs: Signature(arguments: [[.int, .float]], result: [.int, .float])
    case .mathCeil, .mathFloor, .mathSqrt: Signature(arguments: [[.int, .float]], result: [.float])
    case .mathRound: Signature(arguments: [[.int, .float]], result: [.int])
    case .mathPow: Signature(arguments: [[.int, .float], [.int, .float]], result: [.float])
    case .mathIsNaN, .mathIsInfinite: Signature(arguments: [[.int, .float]], result: [.bool])
    case .hashingMD5, .hashingSHA256, .hashingCRC32, .hashingCRC32C:
      Signature(arguments: [[.bytes, .string]], result: [.bytes])
    case .timestampDate: Signature(arguments: [[.int], [.int], [.int]], result: [.timestamp])
    case .timestampValue: Signature(arguments: [[.int, .string]], result: [.timestamp])
    case .durationValue: Signature(arguments: [[.int], [.string]], result: [.duration])
    case .durationTime: Signature(arguments: [[.int], [.int], [.int], [.int]], result: [.duration])
    case .durationAbs: Signature(arguments: [[.duration]], result: [.duration])
    case .latlngValue: Signature(arguments: [[.int, .float], [.int, .float]], result: [.latlng])
    }
  }

  static func of(_ method: Method) -> Signature {
    switch method {
    case .size: Signature(receivers: [.string, .bytes, .list, .set, .map], result: [.int])
    case .lower, .upper, .trim: Signature(receivers: [.string], result: [.string])
    case .matches: Signature(receivers: [.string], arguments: [[.string]], result: [.bool])
    case .replace: Signature(receivers: [.string], arguments: [[.string], [.string]], result: [.string])
    case .split: Signature(receivers: [.string], arguments: [[.string]], result: [.list])
    case .toUtf8: Signature(receivers: [.string], result: [.bytes])
    case .toBase64, .toHexString: Signature(receivers: [.bytes], result: [.string])
    case .hasAll, .hasAny, .hasOnly:
      Signature(receivers: [.list, .set], arguments: [[.list, .set]], result: [.bool])
    case .concat, .removeAll: Signature(receivers: [.list], arguments: [[.list]], result: [.list])
    case .join: Signature(receivers: [.list], arguments: [[.string]], result: [.string])
    case .toSet: Signature(receivers: [.list], result: [.set])
    case .union, .intersection, .difference:
      Signature(receivers: [.set], arguments: [[.set]], result: [.set])
    case .keys, .values: Signature(receivers: [.map], result: [.list])
    case .get: Signature(receivers: [.map], arguments: [[.string, .list], nil])
    case .diff: Signature(receivers: [.map], arguments: [[.map]], result: [.mapDiff])
    case .addedKeys, .removedKeys, .changedKeys, .unchangedKeys, .affectedKeys:
      Signature(receivers: [.mapDiff], result: [.set])
    case .bind: Signature(receivers: [.path], arguments: [[.map]], result: [.path])
    case .year, .month, .day, .hours, .minutes, .dayOfWeek, .dayOfYear, .toMillis:
      Signature(receivers: [.timestamp], result: [.int])
    case .seconds, .nanos: Signature(receivers: [.timestamp, .duration], result: [.int])
    case .date: Signature(receivers: [.timestamp], result: [.timestamp])
    case .time: Signature(receivers: [.timestamp], result: [.duration])
    case .latitude, .longitude: Signature(receivers: [.latlng], result: [.float])
    case .distance: Signature(receivers: [.latlng], arguments: [[.latlng]], result: [.float])
    }
  }
}
