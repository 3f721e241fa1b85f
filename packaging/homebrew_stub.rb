# Installs the formula as Homebrew would on Linux, for packaging/test.py:
#   ruby homebrew_stub.rb FORMULA ARCHIVE FOLDER PREFIX
# FOLDER is the unpacked ARCHIVE. A stub of Homebrew: it has only what the formula uses.
require "digest"
require "fileutils"
require "pathname"

class InstallPath < Pathname
  def /(name) = InstallPath.new(super.to_s)

  # Takes names, or a table of names and what they are called then.
  def install(*files)
    mkpath
    files.flatten.each do |file|
      names = file.is_a?(Hash) ? file : { file => File.basename(file) }
      names.each { |from, to| FileUtils.cp from, self/to }
    end
  end

  def install_symlink(names)
    names.each { |file, name| FileUtils.ln_s Pathname.new(file).relative_path_from(self), self/name }
  end
end

class Formula
  class << self
    attr_reader :values

    %i[desc homepage version license url sha256].each do |name|
      define_method(name) { |value| (@values ||= {})[name] = value }
    end

    def on_linux = yield
    def on_intel = yield
    def on_macos = nil
    def on_arm = nil
    def test = nil
  end

  { bin: "bin", man1: "share/man/man1", bash_completion: "etc/bash_completion.d",
    fish_completion: "share/fish/vendor_completions.d", zsh_completion: "share/zsh/site-functions" }.each do |name, path|
    define_method(name) { InstallPath.new(ARGV[3])/path }
  end
end

load ARGV[0]
values = VaultAgent.values
abort "the formula has another checksum" unless values[:sha256] == Digest::SHA256.file(ARGV[1]).hexdigest
abort "the formula has another file" unless values[:url].end_with?("/#{File.basename(ARGV[1])}")
Dir.chdir(ARGV[2]) { VaultAgent.new.install }
