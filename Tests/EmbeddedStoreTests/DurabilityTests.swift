import Foundation
import Testing

// The children, cuts and faults live in Tests/PowerCut; the lines that they print are what a person sees too.
#if os(Linux)
  @Suite("Durability of the store on disk", .serialized)
  struct DurabilityTests {
    @Test("50 power cuts lose and tear nothing that was acknowledged", .timeLimit(.minutes(10)))
    func powerCuts() async throws {
      let run = try await CrashProgram.run("cuts", "50", "--seed", "1")
      #expect(run.status == 0, "\(run.output)")
      #expect(run.output.contains("0 lost, 0 torn"), "\(run.output)")
    }

    @Test("the same cuts with sync switched off are found to lose transactions", .timeLimit(.minutes(10)))
    func powerCutsWithoutSync() async throws {
      let run = try await CrashProgram.run("cuts", "8", "--seed", "1", "--no-sync")
      #expect(run.status == 1, "\(run.output)")
      #expect(run.output.contains("sync off") && !run.output.contains(": 0 lost"), "\(run.output)")
    }

    @Test(
      "after the n-th write or sync failed nothing is acknowledged, reads go on, and nothing is lost",
      .timeLimit(.minutes(10)))
    func failingWritesAndSyncs() async throws {
      async let writes = CrashProgram.run("faults", "write", "1", "200")
      async let syncs = CrashProgram.run("faults", "sync", "1", "200")
      for run in [try await writes, try await syncs] {
        #expect(run.status == 0, "\(run.output)")
        #expect(run.output.contains("0 problems"), "\(run.output)")
      }
    }

    @Test(
      "a full disk refuses writes with a clear message, reads go on, and nothing is lost",
      .timeLimit(.minutes(10)))
    func fullDisk() async throws {
      let run = try await CrashProgram.run("full")
      if run.output.contains("skipped") { print(run.output) }
      #expect(run.status == 0, "\(run.output)")
    }
  }

  /// The program `hearth-crash`, built beside the tests.
  enum CrashProgram {
    static func run(_ arguments: String...) async throws -> (status: Int32, output: String) {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      let directory = URL(fileURLWithPath: own).deletingLastPathComponent()
      let process = Process()
      process.executableURL = directory.appendingPathComponent("hearth-crash")
      process.arguments = arguments
      let pipe = Pipe()
      process.standardOutput = pipe
      process.standardError = pipe
      return try await withCheckedThrowingContinuation { continuation in
        // A thread of its own: reading to the end blocks.
        Thread.detachNewThread {
          continuation.resume(
            with: Result {
              try process.run()
              let output = pipe.fileHandleForReading.readDataToEndOfFile()
              process.waitUntilExit()
              return (process.terminationStatus, String(decoding: output, as: UTF8.self))
            })
        }
      }
    }
  }
#endif
