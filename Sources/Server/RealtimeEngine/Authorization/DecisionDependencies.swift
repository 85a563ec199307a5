// Records what the decision about a write has read, to find out whether a later change may have changed an answer.

import Access
import RealtimeModel

/// A question of a policy about one location, before or after a write.
struct TreeQuestion: Hashable, Sendable {
  let path: Path
  let state: TreeState
  let fact: TreeFact
}

/// The answers that a decision about a write depends on.
struct DecisionDependencies: Sendable {
  let answers: [TreeQuestion: TreeFact.Answer]
  /// Whether `answers` are all that the decision depends on.
  private let isComplete: Bool
  /// The written paths in ascending order, if the decision depends on data that the write replaces; otherwise none.
  private let replaced: [Path]
  private let questions: [Path: [TreeQuestion]]
  /// The keys of `questions` in ascending order.
  private let paths: [Path]

  fileprivate init(_ answers: [TreeQuestion: TreeFact.Answer], isComplete: Bool, replaced: [Path]) {
    self.answers = answers
    self.isComplete = isComplete
    self.replaced = replaced
    questions = Dictionary(grouping: answers.keys, by: \.path)
    paths = questions.keys.sorted()
  }

  /// Whether a change at a path may have changed something that the decision depends on.
  func mayDepend(on path: Path) -> Bool {
    if !isComplete || isReplaced(path) { return true }
    if (0..<path.count).contains(where: { questions[Path(path.keys.prefix($0))] != nil }) { return true }
    let index = Self.firstIndex(in: paths, notBefore: path)
    return index < paths.count && path.contains(paths[index])
  }

  /// Whether the decision depends on data at, above or below a path that the write replaces.
  private func isReplaced(_ path: Path) -> Bool {
    // No written path lies inside another.
    let next = Self.firstIndex(in: replaced, notBefore: path)
    if next < replaced.count, path.contains(replaced[next]) { return true }
    return next > 0 && replaced[next - 1].contains(path)
  }

  /// Adds the questions whose answers a change at a path may have changed.
  ///
  /// - Returns: false if the decision depends on more than these answers, or on more than `maximum` of them.
  func insertQuestions(
    changedBy path: Path, into changed: inout Set<TreeQuestion>, maximum: Int
  ) -> Bool {
    guard isComplete, !isReplaced(path) else { return false }
    for count in 0..<path.count {
      for question in questions[Path(path.keys.prefix(count))] ?? [] { changed.insert(question) }
    }
    var index = Self.firstIndex(in: paths, notBefore: path)
    while index < paths.count, path.contains(paths[index]), changed.count <= maximum {
      for question in questions[paths[index]] ?? [] { changed.insert(question) }
      index += 1
    }
    return changed.count <= maximum
  }

  private static func firstIndex(in paths: [Path], notBefore path: Path) -> Int {
    var (low, high) = (0, paths.count)
    while low < high {
      let middle = (low + high) / 2
      if paths[middle] < path { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// Records the answers that a policy reads for the decision about one write.
final class RecordedAnswers {
  private var answers: [TreeQuestion: TreeFact.Answer] = [:]
  private var isComplete = true
  private var dependsOnReplacedData: Bool
  private let request: WriteRequest
  private let checkRunning: () throws -> Void
  private var readCount = 0

  /// Maximum number of recorded answers. Beyond it every later change makes the decision outdated.
  private static let maximumAnswers = 200_000

  /// - Parameters:
  ///   - dependsOnReplacedData: whether the value of the write depends on the data that it replaces.
  ///   - checkRunning: called repeatedly. It throws once the server shuts down, which ends the decision.
  init(of request: WriteRequest, dependsOnReplacedData: Bool, checkRunning: @escaping () throws -> Void) {
    self.request = request
    self.dependsOnReplacedData = dependsOnReplacedData
    self.checkRunning = checkRunning
  }

  var dependencies: DecisionDependencies {
    DecisionDependencies(
      answers, isComplete: isComplete, replaced: dependsOnReplacedData ? request.changes.map(\.path) : [])
  }

  /// Records an answer.
  ///
  /// - Parameter isReplaced: whether the write replaces the location. A write may replace as many locations as it has
  ///   values, so they are not recorded one by one.
  func record(_ question: TreeQuestion, _ answer: TreeFact.Answer, isReplaced: Bool) throws {
    readCount += 1
    if readCount % 1_024 == 0 { try checkRunning() }
    if isReplaced {
      dependsOnReplacedData = true
    } else if isComplete {
      answers[question] = answer
      isComplete = answers.count <= Self.maximumAnswers
    }
  }
}
