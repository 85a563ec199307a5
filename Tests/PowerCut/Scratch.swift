// Scratch directories and child processes of a run. This file uses system calls only, because hundreds of
// children start faster without Foundation.

import Glibc

/// The directory of a run, removed with this object.
final class Scratch {
  let path: String

  init() throws {
    // The directory is in memory if possible. The shim decides which data is durable, so a real disk would
    // only take time.
    let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : temporary
    var template = Array((parent + "/powercut-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw CrashError("cannot make a temporary directory") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { Scratch.remove(path) }

  /// Makes an empty directory inside.
  func makeEmptyDirectory(_ name: String) throws -> String {
    let path = self.path + "/" + name
    Scratch.remove(path)
    guard mkdir(path, 0o700) == 0 else { throw CrashError("cannot make \(path)") }
    return path
  }

  /// Makes the directories of a path, which begins with a slash, below a directory.
  static func makeDirectories(_ path: String, below directory: String) throws {
    var current = directory
    for name in path.split(separator: "/") {
      current += "/" + name
      guard mkdir(current, 0o700) == 0 else { throw CrashError("cannot make \(current)") }
    }
  }

  /// Copies the files of a directory into another directory.
  static func copy(_ from: String, to: String) throws {
    guard let entries = opendir(from) else { throw CrashError("cannot list \(from)") }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = Scratch.name(entry)
      if name != ".", name != ".." { try copyFile(from + "/" + name, to: to + "/" + name) }
    }
  }

  private static func copyFile(_ from: String, to: String) throws {
    guard let source = fopen(from, "r") else { throw CrashError("cannot open \(from)") }
    defer { fclose(source) }
    guard let target = fopen(to, "w") else { throw CrashError("cannot open \(to)") }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    var isIntact = true
    while case let count = fread(&buffer, 1, buffer.count, source), count > 0 {
      isIntact = fwrite(buffer, 1, count, target) == count && isIntact
    }
    guard fclose(target) == 0, isIntact else { throw CrashError("cannot copy \(from)") }
  }

  private static func name(_ entry: UnsafeMutablePointer<dirent>) -> String {
    withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
  }

  static func move(_ from: String, to: String) throws {
    remove(to)
    guard rename(from, to) == 0 else { throw CrashError("cannot rename \(from)") }
  }

  /// Removes a file, or a directory with its contents.
  static func remove(_ path: String) {
    if let entries = opendir(path) {
      while let entry = readdir(entries) {
        let name = Scratch.name(entry)
        if name != ".", name != ".." { remove(path + "/" + name) }
      }
      closedir(entries)
    }
    _ = Glibc.remove(path)
  }

  static func read(_ path: String) throws -> String {
    guard let file = fopen(path, "r") else { return "" }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[0..<count] }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// How a child ended.
enum ExitStatus: Equatable {
  case exited(Int32)
  case killed(Int32)
}

/// Starts programs and waits for them.
enum Child {
  /// Runs a program to its end. Blocks; this process has no other work.
  static func run(_ program: String, _ arguments: [String], _ environment: [String: String] = [:]) throws
    -> ExitStatus
  {
    var variables: [String] = []
    var entry = environ
    while let variable = entry.pointee {
      variables.append(String(cString: variable))
      entry += 1
    }
    variables += environment.map { "\($0.key)=\($0.value)" }
    var argumentPointers = ([program] + arguments).map { strdup($0) } + [nil]
    var variablePointers = variables.map { strdup($0) } + [nil]
    defer { for pointer in argumentPointers + variablePointers { free(pointer) } }
    var process = pid_t()
    let code = posix_spawnp(&process, program, nil, nil, &argumentPointers, &variablePointers)
    guard code == 0 else { throw CrashError("cannot start \(program): \(String(cString: strerror(code)))") }
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status & 0x7f == 0 ? .exited((status >> 8) & 0xff) : .killed(status & 0x7f)
  }

  /// The path of another program in this program's directory.
  static func sibling(_ name: String) -> String {
    ownPath.split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/" + name
  }

  /// The path of this program.
  static var ownPath: String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = buffer.withUnsafeMutableBytes { bytes -> Int in
      guard let base = bytes.baseAddress else { return 0 }
      return readlink("/proc/self/exe", base.assumingMemoryBound(to: CChar.self), bytes.count)
    }
    return String(decoding: buffer.prefix(max(count, 0)), as: UTF8.self)
  }
}

/// SplitMix64, so that a seed reproduces a run.
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
