// Formats and parses timestamps (RFC 3339) as proto3's JSON does. It writes 0, 3, 6 or 9 fractional digits, and reads
// any offset from UTC.

extension Timestamp {
  /// The timestamp in UTC, with as many groups of three digits as necessary.
  package var rfc3339: String {
    let days = Int((Double(seconds) / 86_400).rounded(.down))
    let rest = Int(seconds) - days * 86_400
    let (year, month, day) = Self.date(days)
    var text =
      "\(Self.pad(year, 4))-\(Self.pad(month, 2))-\(Self.pad(day, 2))"
      + "T\(Self.pad(rest / 3600, 2)):\(Self.pad(rest / 60 % 60, 2)):\(Self.pad(rest % 60, 2))"
    text += Self.fraction(nanoseconds) + "Z"
    return text
  }

  /// The decimal point and digits of a fraction; empty for zero.
  package static func fraction(_ nanoseconds: Int32) -> String {
    if nanoseconds == 0 { return "" }
    if nanoseconds % 1_000_000 == 0 { return "." + pad(Int(nanoseconds) / 1_000_000, 3) }
    if nanoseconds % 1000 == 0 { return "." + pad(Int(nanoseconds) / 1000, 6) }
    return "." + pad(Int(nanoseconds), 9)
  }

  /// Parses a timestamp such as `2026-11-21T18:57:56.25+01:00`; nil for any other string, or outside of years 1 to
  /// 9999.
  package init?(rfc3339 text: String) {
    var parser = TimestampParser(text)
    guard let year = parser.number(4), parser.take("-"), let month = parser.number(2), parser.take("-"),
      let day = parser.number(2), parser.take("T"), let hour = parser.number(2), parser.take(":"),
      let minute = parser.number(2), parser.take(":"), let second = parser.number(2),
      year >= 1, (1...12).contains(month), day >= 1, day <= Self.days(in: month, of: year),
      hour < 24, minute < 60, second < 60
    else { return nil }
    var nanoseconds = 0
    if parser.take(".") {
      guard let fraction = parser.fraction() else { return nil }
      nanoseconds = fraction
    }
    guard let offset = parser.offset(), parser.isAtEnd else { return nil }
    let seconds = Self.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    self.init(seconds: Int64(seconds), nanoseconds: Int32(nanoseconds))
    guard isInRange else { return nil }
  }

  private static func pad(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  private static func days(in month: Int, of year: Int) -> Int {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return month == 2 ? (isLeap ? 29 : 28) : ([4, 6, 9, 11].contains(month) ? 30 : 31)
  }

  /// Returns the days from 1970-01-01 to a Gregorian date. Years begin in March, so that the leap day is last. Eras
  /// of 400 years have equal length.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let era = year / 400
    let yearOfEra = year % 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// Returns the date of a number of days after 1970-01-01: the inverse of `days`.
  private static func date(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = shifted / 146_097
    let dayOfEra = shifted % 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }
}

/// Parses the parts of a timestamp.
private struct TimestampParser {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = Substring(text).utf8 }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// Parses a number of exactly `width` digits.
  mutating func number(_ width: Int) -> Int? {
    var value = 0
    for _ in 0..<width {
      guard let digit = rest.first.map({ $0 &- UInt8(ascii: "0") }), digit < 10 else { return nil }
      value = value * 10 + Int(digit)
      rest.removeFirst()
    }
    return value
  }

  /// Parses one to nine digits as nanoseconds.
  mutating func fraction() -> Int? {
    var (value, count) = (0, 0)
    while let digit = rest.first.map({ $0 &- UInt8(ascii: "0") }), digit < 10 {
      guard count < 9 else { return nil }
      value = value * 10 + Int(digit)
      count += 1
      rest.removeFirst()
    }
    guard count > 0 else { return nil }
    for _ in count..<9 { value *= 10 }
    return value
  }

  /// Parses `Z`, or hours and minutes east of Greenwich. Returns seconds.
  mutating func offset() -> Int? {
    if take("Z") { return 0 }
    let isEast = take("+")
    guard isEast || take("-"), let hours = number(2), take(":"), let minutes = number(2), hours < 24,
      minutes < 60
    else { return nil }
    return (isEast ? 1 : -1) * (hours * 3600 + minutes * 60)
  }
}
