// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

interface ITokenHooks {
    function beforeSend() external;
    function afterReceive() external;
}

/// @notice A token that misbehaves as it is told. Balances are shares times a factor, so that they can all rise or fall at once.
contract ChangelingToken {
    enum Kind {
        Plain,
        /// @dev Transfers and approvals return nothing.
        Silent,
        /// @dev Transfers that can't be made return false.
        ReturnsFalse,
        /// @dev Returns true and moves nothing.
        Lying,
        FeeOnTransfer,
        /// @dev Calls sender and recipient, if they asked for it.
        Hook,
        FeeAndHook,
        /// @dev Moves nothing from or to listed accounts.
        Blacklist
    }

    error Blacklisted(address account);
    error Insufficient();

    uint256 private constant ONE = 1e18;

    Kind public immutable KIND;
    uint256 public factor = ONE;
    mapping(address account => uint256) private _shares;
    mapping(address account => mapping(address spender => uint256)) public allowance;
    mapping(address account => bool) public hooked;
    mapping(address account => bool) public blacklisted;

    constructor(Kind kind) {
        KIND = kind;
    }

    function mint(address to, uint256 amount) external {
        _shares[to] += (amount * ONE) / factor;
    }

    /// @dev Every balance becomes `percent` of what it is.
    function rebase(uint256 percent) external {
        factor = (factor * percent) / 100;
    }

    function setHook(bool on) external {
        hooked[msg.sender] = on;
    }

    function blacklist(address account, bool on) external {
        blacklisted[account] = on;
    }

    function balanceOf(address account) public view returns (uint256) {
        return (_shares[account] * factor) / ONE;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        _answer(true);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _answer(_move(msg.sender, to, amount));
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        if (KIND == Kind.Lying) _answer(true);
        if (allowance[from][msg.sender] < amount) {
            if (KIND == Kind.ReturnsFalse) _answer(false);
            revert Insufficient();
        }
        if (allowance[from][msg.sender] != type(uint256).max) allowance[from][msg.sender] -= amount;
        _answer(_move(from, to, amount));
    }

    function _move(address from, address to, uint256 amount) private returns (bool) {
        if (KIND == Kind.Lying) return true;
        if (blacklisted[from]) revert Blacklisted(from);
        if (blacklisted[to]) revert Blacklisted(to);
        bool calls = KIND == Kind.Hook || KIND == Kind.FeeAndHook;
        if (calls && hooked[from]) ITokenHooks(from).beforeSend();
        // Rounded down, so a balance may lose a unit more or less than the amount.
        uint256 shares = (amount * ONE) / factor;
        if (_shares[from] < shares) {
            if (KIND == Kind.ReturnsFalse) return false;
            revert Insufficient();
        }
        _shares[from] -= shares;
        uint256 fee = KIND == Kind.FeeOnTransfer || KIND == Kind.FeeAndHook ? shares / 50 : 0;
        _shares[to] += shares - fee;
        _shares[address(this)] += fee;
        if (calls && hooked[to]) ITokenHooks(to).afterReceive();
        return true;
    }

    /// @dev Ends the call.
    function _answer(bool result) private view {
        uint256 size = KIND == Kind.Silent ? 0 : 32;
        assembly ("memory-safe") {
            mstore(0, result)
            return(0, size)
        }
    }
}

/// @notice An account that, from inside the hook of a token, does once what it was told.
contract Mischief is ITokenHooks {
    address private _target;
    bytes private _data;

    function approve(address token, address spender) external {
        (bool done, ) = token.call(abi.encodeWithSignature("approve(address,uint256)", spender, type(uint256).max));
        require(done, "approve");
    }

    function hook(ChangelingToken token) external {
        token.setHook(true);
    }

    function plan(address target, bytes calldata data) external {
        (_target, _data) = (target, data);
    }

    function run(address target, bytes calldata data) external returns (bool done) {
        (done, ) = target.call(data);
    }

    function beforeSend() external {
        _act();
    }

    function afterReceive() external {
        _act();
    }

    function _act() private {
        if (_target == address(0)) return;
        (address target, bytes memory data) = (_target, _data);
        delete _target;
        (bool done, ) = target.call(data);
        done;
    }
}
