// The kit that shows that a store keeps the contract of OrderedStore: properties, each over a subject that starts
// empty and with a seed that decides every random choice. Whoever writes a store runs all of them in its tests:
//
//   @Test(arguments: ConformanceCheck.all)
//   func keepsTheContract(_ check: ConformanceCheck) async throws {
//     try await check.run(MySubject(), seed: 1)
//   }

public import OrderedStore

/// The store under test: something that can be opened, closed and opened again over what it left.
public protocol StoreSubject: Sendable {
  /// Opens the store: empty the first time, later over what the one before left when it was closed.
  func open(_ options: StoreOptions) async throws -> any OrderedStore

  /// Removes now what lies below the history windows of an open store, which it does by itself at its leisure.
  func trim(_ store: any OrderedStore) async throws
}

/// One property of the contract.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
  /// What must hold, in words.
  public let name: String
  private let body: @Sendable (ConformanceRun) async throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (ConformanceRun) async throws -> Void) {
    self.name = name
    self.body = body
  }

  /// Checks a subject that has not been opened before.
  ///
  /// - Parameter seed: decides every random choice of the check; a failure names it.
  /// - Throws: ``ConformanceFailure`` where the contract is broken, or an error that the store should not have thrown.
  public func run(_ subject: some StoreSubject, seed: UInt64) async throws {
    let run = ConformanceRun(subject, seed: seed)
    do {
      try await body(run)
    } catch let failure as ConformanceFailure {
      throw ConformanceFailure("\(name) (seed \(seed)): \(failure.message)")
    }
  }

  /// The name.
  public var description: String { name }

  /// Every property of the contract.
  public static let all: [ConformanceCheck] =
    ordering + limits + past + sequencing + inFlight + validation + isolation + log + retention + restart
    + catalogue
}

/// Where a store broke the contract.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// What was seen and what was expected.
  public let message: String

  init(_ message: String) { self.message = message }

  /// The message.
  public var description: String { message }
}

/// Fails unless `condition` holds.
func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
  if !condition { throw ConformanceFailure(message()) }
}

/// Fails unless both are equal.
func expectEqual<Value: Equatable>(_ seen: Value, _ expected: Value, _ what: @autoclosure () -> String) throws
{
  if seen != expected { throw ConformanceFailure("\(what()): saw \(seen), expected \(expected)") }
}

/// Fails unless `body` throws a store error of a code.
func expectError(_ code: StoreError.Code, _ what: String, _ body: () async throws -> Void) async throws {
  do {
    try await body()
  } catch let error as StoreError {
    return try expect(error.code == code, "\(what): threw \(error), expected \(code.rawValue)")
  }
  throw ConformanceFailure("\(what): nothing was thrown, expected \(code.rawValue)")
}
