// Tests of password schemes against published vectors, of their bounds, and of the hasher.

import JSON
import Locking
import OrderedStore
import Testing

@testable import Identity

#if canImport(Glibc)
  import Glibc

  /// Runs tasks on a dedicated thread, and records the priorities of the threads that resume them.
  private final class RecordingExecutor: TaskExecutor {
    private let threads = ThreadPool(threads: 1)
    private let recorded = Guarded<Set<Int32>>([])

    var priorities: Set<Int32> { recorded.withLock { $0 } }

    /// The nice value of the calling thread.
    static var priority: Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

    func enqueue(_ job: consuming ExecutorJob) {
      recorded.withLock { _ = $0.insert(Self.priority) }
      let job = UnownedJob(job)
      threads.submit { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
  }
#endif

@Suite("Passwords")
struct PasswordTests {
  private static func bytes(_ text: String) -> [UInt8] {
    Base64.decode(text.utf8, .either, paddedBy: [UInt8(ascii: "=")]) ?? []
  }

  private let hasher = PasswordHasher(.standard)

  @Test("Firebase's scrypt equals the vector of its published implementation")
  func firebaseScrypt() async throws {
    let key = "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA=="
    let stored = StoredPassword(
      hash:
        "lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==",
      salt: "42xEC+ixf3L2lw==",
      scheme: .firebaseScrypt(
        signerKey: Self.bytes(key), separator: Self.bytes("Bw=="), rounds: 8, memoryCost: 14))
    #expect(try await hasher.verify("user1password", stored))
    #expect(try await !hasher.verify("user1passworD", stored))
  }

  @Test("Argon2 equals the vector of its reference implementation")
  func argon2() async throws {
    // The vector of phc-winner-argon2 for Argon2i with two iterations and 256 KiB.
    let stored = StoredPassword(
      hash: "iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8=", salt: "c29tZXNhbHQ=",
      scheme: .argon2(
        .i, memoryKiB: 256, iterations: 2, parallelism: 1, length: 32, version: 0x13, associatedData: []))
    #expect(try await hasher.verify("password", stored))
    #expect(try await !hasher.verify("passwort", stored))
  }

  @Test("A new password is stored with a random salt, and only the same password matches it")
  func newPasswords() async throws {
    let (first, second) = (try await hasher.hash("opensesame"), try await hasher.hash("opensesame"))
    #expect(first.hash != second.hash && first.salt != second.salt)
    #expect(first.scheme == .standard)
    #expect(try await hasher.verify("opensesame", first))
    #expect(try await !hasher.verify("opensesamE", first))
    #expect(try await !hasher.verify("", first))
  }

  @Test("Hashing uses at most two threads, and leaves a processor to the databases")
  func threads() {
    #expect([1, 2, 3, 4, 64].map { PasswordHasher.threadCount(processors: $0) } == [1, 1, 2, 2, 2])
  }

  #if canImport(Glibc)
    // The thread that resumes a task may start a thread of Swift's pool, which then has the same priority.
    @Test("A thread of normal priority resumes the caller of a hash")
    func resumption() async throws {
      let executor = RecordingExecutor()
      try await withTaskExecutorPreference(executor) { _ = try await hasher.hash("opensesame") }
      #expect(executor.priorities == [RecordingExecutor.priority])
    }
  #endif

  @Test("A production server never accepts the emulator's stored text, which contains the password")
  func emulatorScheme() async throws {
    #expect(try await !hasher.verify("secret", .emulator("secret")))
    #expect(try await PasswordHasher(.emulator).verify("secret", .emulator("secret")))
  }

  @Test(
    "Parameters that would take minutes or gigabytes are rejected",
    arguments: [
      PasswordScheme.firebaseScrypt(signerKey: [1], separator: [], rounds: 9, memoryCost: 14),
      .firebaseScrypt(signerKey: [1], separator: [], rounds: 8, memoryCost: 15),
      .firebaseScrypt(signerKey: [], separator: [], rounds: 8, memoryCost: 14),
      .scrypt(cost: 1 << 30, blockSize: 8, parallelism: 1, length: 32),
      .scrypt(cost: 1 << 14, blockSize: 1024, parallelism: 1024, length: 32),
      .scrypt(cost: 3, blockSize: 8, parallelism: 1, length: 32),
      .scrypt(cost: 2, blockSize: 8, parallelism: 1, length: 1 << 30),
      .pbkdf2(.sha256, rounds: 120_001), .pbkdf2(.sha1, rounds: -1),
      .digest(.sha512, rounds: 8193, saltFirst: true), .digest(.sha256, rounds: 0, saltFirst: true),
      .argon2(
        .id, memoryKiB: 1 << 20, iterations: 1, parallelism: 1, length: 32, version: 0x13, associatedData: []),
      .argon2(
        .id, memoryKiB: 64, iterations: 1000, parallelism: 1, length: 32, version: 0x13, associatedData: []),
      .argon2(
        .id, memoryKiB: 64, iterations: 1, parallelism: 1, length: 32, version: 7, associatedData: []),
    ])
  func bounds(_ scheme: PasswordScheme) {
    #expect(throws: IdentityError.self) { try scheme.validate() }
  }

  @Test(
    "Verifying an imported hash takes the work of the default scheme, also if the hash cannot be read",
    arguments: [
      ("hmac", PasswordScheme.hmac(.sha256, key: [1], saltFirst: true), "AAAA"),
      ("digest", .digest(.sha512, rounds: 8192, saltFirst: true), "AAAA"),
      ("PBKDF2", .pbkdf2(.sha256, rounds: 30_000), "AAAA"),
      ("scrypt", .scrypt(cost: 1024, blockSize: 8, parallelism: 1, length: 32), "AAAA"),
      ("Firebase's", .firebaseScrypt(signerKey: [1], separator: [], rounds: 8, memoryCost: 14), "AAAA"),
      ("default", .standard, "AAAA"), ("unreadable", .standard, "!"), ("empty", .standard, ""),
      ("bcrypt", .bcrypt, Base64.encode(Array(PasswordTests.bcrypt.utf8))),
      ("unreadable bcrypt", .bcrypt, "AAAA"),
    ])
  func equalWork(name: String, scheme: PasswordScheme, hash: String) {
    let standard = PasswordScheme.standard.verificationWork("x", hash: "AAAA", salt: nil)
    let work = scheme.verificationWork("x", hash: hash, salt: "AAAA")
    let total = work + PasswordScheme.standard.addWork(to: work)
    #expect(abs(total - standard) <= standard / 16, "\(name) \(total)")
    // bcrypt reads a password up to the first NUL, so such a password matches nothing.
    let rejected = scheme.verificationWork("\0", hash: hash, salt: "AAAA")
    #expect(scheme == .bcrypt ? rejected == 0 : rejected == work)
  }

  private static let bcrypt = "$2a$08$52VAkARlB/3VPvTABUs9UeqL3Ks/Q.vKBMEt6RF9/N/tebcYThVsK"

  @Test("A bcrypt hash with a cost of more than 14, or of another form, matches nothing")
  func bcryptBounds() async throws {
    for text in [
      "$2a$31$52VAkARlB/3VPvTABUs9UeqL3Ks/Q.vKBMEt6RF9/N/tebcYThVsK", "$2a$10$short", "$1$salt$hash", "",
    ] {
      let stored = StoredPassword(hash: Base64.encode(Array(text.utf8)), salt: nil, scheme: .bcrypt)
      #expect(try await !hasher.verify("password", stored))
    }
  }
}
