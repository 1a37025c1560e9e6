import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import load, rmdir
from conan.tools.scm import Version

required_conan_version = ">=2.0"


class tensorpar(ConanFile):
    name = "tensorpar"
    description = "Compile-time typed neural networks, and the fastest way to train them on a cluster"
    license = "Apache-2.0"
    topics = ("deep-learning", "parallelism", "header-only", "cpp20")
    settings = "os", "arch", "compiler", "build_type"
    options = {"json": [True, False], "eigen": [True, False], "threads": [True, False], "peers": [True, False],
               "ranges": [True, False], "tool": [True, False], "z3": [True, False],
               "mpi": [True, False], "cuda": [True, False], "nccl": [True, False], "cudnn": [True, False],
               "compiled": [True, False], "shared": [True, False], "fPIC": [True, False]}
    default_options = {"json": True, "eigen": True, "threads": True, "peers": False, "ranges": False, "tool": False, "z3": False, "mpi": False,
                       "cuda": False, "nccl": False, "cudnn": False, "compiled": False, "shared": False, "fPIC": True}
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"
    no_copy_source = True

    # The first version of each compiler that takes constexpr std::vector and the concepts used here.
    compilers = {"gcc": "12", "clang": "16", "apple-clang": "15", "msvc": "193"}

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, "include", "tensorpar", "core", "config.hpp"))
        major, minor = (re.search(rf"version_{part} = (\d+)", config)[1] for part in ("major", "minor"))
        self.version = f"{major}.{minor}.0"

    def configure(self):
        # `compiled`: planner and executor as a library, which is of one compiler and machine
        if not self.options.compiled:
            self.package_type = "header-library"
            self.options.rm_safe("shared")
            self.options.rm_safe("fPIC")
        else:
            self.package_type = "shared-library" if self.options.shared else "static-library"
            for part in ("json", "eigen", "threads"):
                setattr(self.options, part, True)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", transitive_headers=True, options={"header_only": True})
        if self.options.json or self.options.peers or self.options.tool:
            self.requires("nlohmann_json/[>=3.11 <4]", transitive_headers=True)
        if self.options.eigen:
            self.requires("eigen/[>=3.4 <4]", transitive_headers=True)
        if self.options.ranges:
            self.requires("range-v3/[>=0.12 <1]", transitive_headers=True)
        if self.options.tool:
            self.requires("cli11/[>=2.1 <3]", transitive_headers=True)
        if self.options.z3:
            self.requires("z3/[>=4.8 <5]", transitive_headers=True, transitive_libs=True)
        # mpi, cuda, nccl and cudnn: the machine's own, found by CMake

    def package_id(self):
        # headers are the same for every compiler and machine; which parts are offered differs
        if self.info.options.compiled:
            return
        self.info.settings.clear()
        self.info.requires.clear()

    def validate(self):
        check_min_cppstd(self, 20)
        compiler = str(self.settings.compiler)
        oldest = self.compilers.get(compiler)
        if oldest and Version(self.settings.compiler.version) < oldest:
            raise ConanInvalidConfiguration(f"tensorpar needs {compiler} {oldest} or newer")
        if self.options.tool and not (self.options.json and self.options.eigen and self.options.threads):
            raise ConanInvalidConfiguration("the option tool needs json, eigen and threads")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("json", "eigen", "threads", "peers", "ranges", "tool", "z3", "mpi", "cuda", "nccl", "cudnn", "compiled"):
            toolchain.cache_variables[f"TENSORPAR_{part.upper()}"] = bool(self.options.get_safe(part))
        toolchain.cache_variables["CMAKE_INSTALL_LIBDIR"] = "lib"
        for part in ("TESTS", "EXAMPLES", "BENCH", "FUZZ", "TOOL"):    # whoever wants the program makes it of tensorpar::tool
            toolchain.cache_variables[f"TENSORPAR_BUILD_{part}"] = False
        toolchain.cache_variables["TENSORPAR_INSTALL"] = True
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        if self.options.compiled:
            cmake.build(target="tensorpar_compiled")

    def package(self):
        CMake(self).install()
        if not self.options.compiled:
            rmdir(self, os.path.join(self.package_folder, "lib"))

    def package_info(self):
        # The package brings its own config file, the same that `cmake --install` gives: one set of targets for all ways of getting it.
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = ["lib"] if self.options.compiled else []
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "tensorpar")]
        self.cpp_info.set_property("cmake_find_mode", "none")
