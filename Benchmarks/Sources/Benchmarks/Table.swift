// The table of `make bench`: interleaved rounds of each measurement and its reference, medians, and the ratio
// to the reference with its goal.

import NIOConcurrencyHelpers

/// A measurement and its reference. One run may return several figures, each with its own line.
struct Row {
  /// The command that prints the row.
  enum Suite: String {
    /// `make bench`.
    case standard
    /// `make bench-firestore`: rows that take minutes.
    case firestore
    /// `make bench-realtime`: rows that take minutes.
    case realtime
    /// `make bench-large`: rows that need a large disk.
    case large
  }

  var suite = Suite.standard
  var names: [String]
  var goals: [String]
  var units: [String]
  /// The maximum number of rounds of a long row, whatever the arguments are.
  var maximumRounds = Int.max
  var measure: @Sendable (Setting) async throws -> [Double]
  var reference: @Sendable (Setting) async throws -> [Double]

  /// Makes a row of one figure.
  init(
    _ name: String, goal: String, unit: String, in suite: Suite = .standard, maximumRounds: Int = .max,
    measure: @escaping @Sendable (Setting) async throws -> Double,
    reference: @escaping @Sendable (Setting) async throws -> Double
  ) {
    self.suite = suite
    names = [name]
    goals = [goal]
    units = [unit]
    self.maximumRounds = maximumRounds
    self.measure = { [try await measure($0)] }
    self.reference = { [try await reference($0)] }
  }

  /// Makes a row of several figures.
  init(
    _ names: [String], goals: [String], units: [String], in suite: Suite = .standard,
    maximumRounds: Int = .max,
    measure: @escaping @Sendable (Setting) async throws -> [Double],
    reference: @escaping @Sendable (Setting) async throws -> [Double]
  ) {
    self.suite = suite
    self.names = names
    self.goals = goals
    self.units = units
    self.maximumRounds = maximumRounds
    self.measure = measure
    self.reference = reference
  }

  /// Runs the rounds and prints a line for each figure, or one with the failure.
  /// - Returns: whether the row succeeded.
  func print(_ setting: Setting, rounds: Int, referenceOnly: Bool) async -> Bool {
    do {
      try await run(setting, rounds: rounds, referenceOnly: referenceOnly)
      return true
    } catch {
      let reason = "\(error)".split(whereSeparator: \.isNewline).joined(separator: " ")
      printLine("| \(names[0]) | failed: \(reason.replacing("|", with: "/")) | | | \(goals[0]) | |")
      return false
    }
  }

  private func run(_ setting: Setting, rounds: Int, referenceOnly: Bool) async throws {
    var measured = [[Double]](repeating: [], count: names.count)
    var references = measured
    var times: [Double] = []
    var referenceTimes: [Double] = []
    for _ in 0..<min(rounds, maximumRounds) {
      setting.processorTimes.withLockedValue { $0.removeAll() }
      if !referenceOnly {
        for (index, value) in try await measure(setting).enumerated() { measured[index].append(value) }
        times += setting.takeProcessorTimes()
      }
      for (index, value) in try await reference(setting).enumerated() { references[index].append(value) }
      referenceTimes += setting.takeProcessorTimes()
    }
    let time = times.isEmpty ? "" : "\(grouped(median(times))) µs"
    let referenceTime = referenceTimes.isEmpty ? "" : " (\(grouped(median(referenceTimes))) µs)"
    for index in names.indices {
      let (a, b) = (median(measured[index]), median(references[index]))
      let ratio = formatted(a / max(b, 1e-9))
      printLine(
        "| \(names[index]) | \(grouped(a)) \(units[index]) | \(grouped(b)) | \(ratio) | \(goals[index]) | \(time)\(referenceTime) |"
      )
    }
  }
}

func median(_ values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// A percentile of the values.
func percentile(_ values: [Double], _ share: Double) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}

func grouped(_ value: Double) -> String {
  var digits = String(Int(value.rounded()))
  var index = digits.count - 3
  while index > 0 {
    digits.insert(",", at: digits.index(digits.startIndex, offsetBy: index))
    index -= 3
  }
  return digits
}

/// The number with two decimals.
private func formatted(_ value: Double) -> String {
  let hundredths = Int((value * 100).rounded())
  let rest = hundredths % 100
  return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
}
