// RFC 3339 times in UTC with milliseconds, as the Identity Toolkit API uses them for some members.

/// Formatting of times.
package enum RFC3339 {
  /// Formats milliseconds since the Unix epoch, such as `2023-11-14T22:13:20.000Z`.
  package static func text(_ milliseconds: Int64) -> String {
    let days = floorDivide(milliseconds, 86_400_000)
    let (year, month, day) = civil(days)
    let time = milliseconds - days * 86_400_000
    let (hour, minute) = (time / 3_600_000, time / 60_000 % 60)
    let (second, fraction) = (time / 1000 % 60, time % 1000)
    return "\(pad(year, 4))-\(pad(month, 2))-\(pad(day, 2))T\(pad(hour, 2)):\(pad(minute, 2)):"
      + "\(pad(second, 2)).\(pad(fraction, 3))Z"
  }

  /// The date of a number of days since 1970-01-01, in the proleptic Gregorian calendar. The calculation counts in eras
  /// of 400 years that begin on 1 March.
  package static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
  }

  private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
  }

  private static func pad(_ value: Int64, _ width: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
  }
}
