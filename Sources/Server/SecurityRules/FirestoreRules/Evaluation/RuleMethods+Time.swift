// Implements the methods of timestamps, durations and geographic points.

import FirestoreModel

extension RuleMethods {
  private static let secondsOfDay: Int64 = 86_400

  /// Calls a method of a timestamp, in UTC.
  static func call(_ method: Method, _ time: Timestamp) throws(RuleFault) -> RuleValue {
    let (quotient, remainder) = time.seconds.quotientAndRemainder(dividingBy: secondsOfDay)
    let days = remainder < 0 ? quotient - 1 : quotient
    let second = time.seconds - days * secondsOfDay
    let date = CivilDate(daysSinceEpoch: days)
    switch method {
    case .year: return .int(date.year)
    case .month: return .int(date.month)
    case .day: return .int(date.day)
    case .hours: return .int(second / 3600)
    case .minutes: return .int(second / 60 % 60)
    case .seconds: return .int(second % 60)
    case .nanos: return .int(Int64(time.nanoseconds))
    // 1970-01-01 was a Thursday, the fourth day of the week.
    case .dayOfWeek: return .int(((days + 3) % 7 + 7) % 7 + 1)
    case .dayOfYear: return .int(date.dayOfYear)
    case .date: return .timestamp(Timestamp(seconds: days * secondsOfDay))
    case .time:
      guard let span = RuleDuration(seconds: second, nanoseconds: Int64(time.nanoseconds)) else {
        preconditionFailure("invariant: a day is within the limit of a span")
      }
      return .duration(span)
    case .toMillis: return .int(time.seconds * 1000 + Int64(time.nanoseconds) / 1_000_000)
    default: throw .functionNotFound(method.rawValue)
    }
  }

  /// Calls a method of a duration.
  static func call(_ method: Method, _ duration: RuleDuration) throws(RuleFault) -> RuleValue {
    switch method {
    case .seconds: .int(duration.seconds)
    case .nanos: .int(Int64(duration.nanoseconds))
    default: throw .functionNotFound(method.rawValue)
    }
  }

  /// Calls a method of a geographic point.
  static func call(_ method: Method, _ point: GeoPoint, _ arguments: [RuleValue]) throws(RuleFault)
    -> RuleValue
  {
    switch method {
    case .latitude: return .float(point.latitude)
    case .longitude: return .float(point.longitude)
    case .distance:
      guard case .latlng(let other) = arguments[0] else {
        throw .unsupported("latlng.distance(\(arguments[0].typeName))")
      }
      return .float(
        RuleMath.distance((point.latitude, point.longitude), (other.latitude, other.longitude)))
    default: throw .functionNotFound(method.rawValue)
    }
  }
}
