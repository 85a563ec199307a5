// Sums the numbers of one field.
//
// Invariant: integers are added exactly, in 128 bits, and only the final sum decides whether the result is an
// integer. If one of the numbers is a double, the sum is a double.

import FirestoreModel

/// A sum of integers and doubles.
struct NumberSum: Sendable {
  /// The integers' sum is `high` · 2^64 + `low`.
  private var high: Int64 = 0
  private var low: UInt64 = 0
  private var doubles = 0.0
  private var hasDoubles = false
  /// The number of added numbers. Values of other types are not counted.
  private(set) var count: Int64 = 0

  /// Adds a value, if it is a number.
  mutating func add(_ value: Value) {
    switch value {
    case .integer(let number):
      let (sum, carries) = low.addingReportingOverflow(UInt64(bitPattern: number))
      low = sum
      // Fewer than 2^63 numbers are ever added, so the upper half cannot overflow.
      high &+= (number < 0 ? -1 : 0) &+ (carries ? 1 : 0)
    case .double(let number):
      doubles += number
      hasDoubles = true
    default: return
    }
    count += 1
  }

  /// The sum: an integer if all numbers are integers and it fits, else a double; the integer 0 without
  /// numbers.
  var sum: Value {
    if !hasDoubles, let exact { return .integer(exact) }
    return .double(total)
  }

  /// The mean, as a double; null without numbers.
  var average: Value { count == 0 ? .null : .double(total / Double(count)) }

  /// The sum of the integers, if it fits in 64 bits.
  private var exact: Int64? {
    let number = Int64(bitPattern: low)
    return high == (number < 0 ? -1 : 0) ? number : nil
  }

  private var total: Double {
    let integers = exact.map { Double($0) } ?? (Double(high) * 0x1p64 + Double(low))
    return hasDoubles ? integers + doubles : integers
  }
}
