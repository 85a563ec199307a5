// Implements the functions of the rules language that need no documents, such as `math.abs` and `int`.

import Crypto
import FirestoreModel

/// The functions of the language that need no documents.
enum RuleFunctions {
  /// Calls a function with one argument.
  static func call(
    _ builtin: Builtin, _ argument: RuleValue, _ budget: inout RuleBudget
  ) throws(RuleFault) -> RuleValue {
    try spend(converting: argument, by: builtin, &budget)
    switch (builtin, argument) {
    case (.debug, _): return argument
    case (.path, .string(let text)): return .path(try RulePath(template: text.string))
    case (.string, _): return .string(try argument.convertedToText())
    case (.int, .int), (.float, .float), (.mathRound, .int): return argument
    case (.int, .float(let value)): return .int(RuleNumbers.truncated(value))
    case (.int, .string(let text)):
      guard let value = RuleNumbers.int(text.string) else { throw .conversion("int") }
      return .int(value)
    case (.float, .int(let value)): return .float(Double(value))
    case (.float, .string(let text)):
      guard let value = RuleNumbers.float(text.string) else { throw .conversion("float") }
      return .float(value)
    case (.mathAbs, .int(let value)):
      guard value != .min else { throw .outOfRange }
      return .int(abs(value))
    case (.mathAbs, .float(let value)): return .float(value.magnitude)
    case (.mathRound, .float(let value)): return .int(RuleNumbers.rounded(value))
    case (.mathCeil, _), (.mathFloor, _), (.mathSqrt, _), (.mathIsNaN, _), (.mathIsInfinite, _):
      guard let value = argument.asFloat else { break }
      return math(builtin, value)
    case (.hashingMD5, _), (.hashingSHA256, _), (.hashingCRC32, _), (.hashingCRC32C, _):
      return .bytes(try hash(builtin, argument))
    case (.timestampValue, .int(let milliseconds)): return .timestamp(try time(milliseconds: milliseconds))
    case (.timestampValue, .string(let text)):
      guard let time = Timestamp(rfc3339: text.string) else { throw .conversion("timestamp") }
      return .timestamp(time)
    case (.durationAbs, .duration(let value)):
      return .duration(value.seconds < 0 || value.nanoseconds < 0 ? value.negated : value)
    default: break
    }
    throw .unsupported("\(builtin.rawValue)(\(argument.typeName))")
  }

  private static func spend(
    converting argument: RuleValue, by builtin: Builtin, _ budget: inout RuleBudget
  ) throws(RuleFault) {
    switch builtin {
    case .debug: break
    case .hashingMD5, .hashingSHA256, .hashingCRC32, .hashingCRC32C:
      try budget.spend(reading: argument, times: RuleCost.convertedByte)
    case .string:
      // A string converts to itself.
      if case .path = argument { try budget.spend(reading: argument) }
    default:
      if case .string = argument { try budget.spend(reading: argument, times: RuleCost.parsedByte) }
    }
  }

  /// Calls a function with no argument or with several.
  static func call(_ builtin: Builtin, _ arguments: [RuleValue]) throws(RuleFault) -> RuleValue {
    switch builtin {
    case .debug: return arguments[0]
    case .mathPow:
      if let base = arguments[0].asFloat, let exponent = arguments[1].asFloat {
        return .float(RuleMath.power(base, exponent))
      }
    case .timestampDate:
      if let date = integers(arguments) {
        guard let days = CivilDate(year: date[0], month: date[1], day: date[2])?.daysSinceEpoch else {
          throw .outOfRange
        }
        return .timestamp(Timestamp(seconds: days * 86_400))
      }
    case .durationValue:
      if case .int(let count) = arguments[0], case .string(let unit) = arguments[1] {
        return .duration(try duration(count, unit.string))
      }
    case .durationTime:
      if let parts = integers(arguments) { return .duration(try duration(parts)) }
    case .latlngValue:
      if let latitude = arguments[0].asFloat, let longitude = arguments[1].asFloat {
        let point = GeoPoint(latitude: latitude, longitude: longitude)
        guard point.isInRange else { throw .outOfRange }
        return .latlng(point)
      }
    default: throw .argumentCount(builtin.rawValue)
    }
    let types = arguments.map(\.typeName).joined(separator: ", ")
    throw .unsupported("\(builtin.rawValue)(\(types))")
  }

  private static func integers(_ values: [RuleValue]) -> [Int64]? {
    var result: [Int64] = []
    for value in values {
      guard case .int(let value) = value else { return nil }
      result.append(value)
    }
    return result
  }

  private static func math(_ builtin: Builtin, _ value: Double) -> RuleValue {
    switch builtin {
    case .mathCeil: .float(value.rounded(.up))
    case .mathFloor: .float(value.rounded(.down))
    case .mathSqrt: .float(value.squareRoot())
    case .mathIsNaN: .bool(value.isNaN)
    default: .bool(value.isInfinite)
    }
  }

  private static func time(milliseconds: Int64) throws(RuleFault) -> Timestamp {
    let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    let isBefore = remainder < 0
    let time = Timestamp(
      seconds: isBefore ? quotient - 1 : quotient,
      nanoseconds: Int32(isBefore ? remainder + 1000 : remainder) * 1_000_000)
    guard time.isInRange else { throw .outOfRange }
    return time
  }

  private static let secondsOfUnit: [String: Int64] = ["w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1]

  private static func duration(_ count: Int64, _ unit: String) throws(RuleFault) -> RuleDuration {
    let duration: RuleDuration?
    switch unit {
    case "ms": duration = RuleDuration(seconds: count / 1000, nanoseconds: count % 1000 * 1_000_000)
    case "ns": duration = RuleDuration(seconds: 0, nanoseconds: count)
    default:
      guard let factor = secondsOfUnit[unit] else { throw .conversion("duration") }
      let (seconds, overflow) = count.multipliedReportingOverflow(by: factor)
      duration = overflow ? nil : RuleDuration(seconds: seconds)
    }
    guard let duration else { throw .outOfRange }
    return duration
  }

  private static func duration(_ parts: [Int64]) throws(RuleFault) -> RuleDuration {
    var seconds: Int64 = 0
    for (part, factor) in zip(parts, [3600, 60, 1] as [Int64]) {
      let (product, overflow) = part.multipliedReportingOverflow(by: factor)
      let (sum, overflowed) = seconds.addingReportingOverflow(product)
      if overflow || overflowed { throw .outOfRange }
      seconds = sum
    }
    guard let duration = RuleDuration(seconds: seconds, nanoseconds: parts[3]) else { throw .outOfRange }
    return duration
  }

  private static func hash(_ builtin: Builtin, _ argument: RuleValue) throws(RuleFault) -> [UInt8] {
    let bytes: [UInt8]
    switch argument {
    case .string(let text): bytes = Array(text.string.utf8)
    case .bytes(let value): bytes = value
    default: throw .unsupported("\(builtin.rawValue)(\(argument.typeName))")
    }
    return switch builtin {
    case .hashingMD5: Array(Insecure.MD5.hash(data: bytes))
    case .hashingSHA256: Array(SHA256.hash(data: bytes))
    case .hashingCRC32: Checksum.crc32.littleEndianBytes(of: bytes)
    default: Checksum.crc32c.littleEndianBytes(of: bytes)
    }
  }
}

extension RuleValue {
  /// A number as a float.
  var asFloat: Double? {
    switch self {
    case .int(let value): Double(value)
    case .float(let value): value
    default: nil
    }
  }
}
